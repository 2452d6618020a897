"""How deep JSON is nested, told by a few calls in C: equal to a walk over every byte, and no call takes long."""

import contextlib
import json
import re

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.asgi import batch_publish
from conversations.core import json_depth
from conversations.core.errors import TooLarge
from conversations.events import payload
from tests.support.growth import ratio, read_numbers

MARK = re.compile(rb'"[^"]*"?|[\[{\]}]')  # a text without escapes, to its end or the body's; or a bracket
BITS = [b"[", b"]", b"{", b"}", b'"', b"\\", b"\\\\", b'\\"', b"a", b",", b"\xff", b"[" * 40, b"]" * 40, b'"[[' * 9]
BODIES = st.lists(st.sampled_from(BITS), max_size=60).map(b"".join)
SHAPES = {
    "brackets": b"[", "pairs": b"[]", "objects": b'{"a":', "quotes": b'"', "texts": b'["",', "backslashes": b"\\",
    "escapes": b'"\\"', "digits": b"1", "words": b'{"a":"word",', "blanks": b" [\n",
}  # fmt: skip


def marks(body):
    """Walk over the texts and brackets, the slow way."""
    blank = body.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    return MARK.finditer(blank)


def is_deeper_slowly(body, most):
    depth = 0
    for match in marks(body):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(match.group(), 0)
        if depth > most:
            return True
    return False


@given(BODIES, st.integers(0, 60), st.integers(1, 7))
def test_it_tells_what_a_walk_over_every_byte_tells(body, most, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_depth, "PIECE", piece)

        assert json_depth.is_deeper(body, most) == is_deeper_slowly(body, most)


@pytest.mark.slow
@given(BODIES, st.integers(1, 7))
def test_pieces_together_are_the_body_with_its_texts_blank(body, piece):
    expected = bytearray(b" " * len(body))
    for match in marks(body):
        if len(match.group()) == 1 and match.group() != b'"':
            expected[match.start()] = match.group()[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_depth, "PIECE", piece)
        outside = b"".join(piece.outside for piece in json_depth.pieces(body, 0))

    assert re.sub(rb"[^\[\]{}]", b" ", outside) == bytes(expected)


@pytest.mark.parametrize("text", [b'{"a\\\\":[', rb'{"a":"}\\\"]","b":["\u005b\\"],"never \" ended]'])
def test_depth_counts_outside_of_texts_only(text):
    assert json_depth.is_deeper(text, 1)
    assert not json_depth.is_deeper(text, 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_body_of_any_shape_is_looked_at_in_short_steps(shape):
    unit = SHAPES[shape]
    body = unit * ((1 << 20) // len(unit))

    def look():
        with contextlib.suppress(TooLarge):
            payload.check_depth(body)

    if shape in ("pairs", "quotes", "backslashes", "digits", "escapes"):
        payload.check_depth(body)
    else:
        with pytest.raises(TooLarge):
            payload.check_depth(body)
    assert ratio(look, read_numbers, below=4) < 4
    assert ratio(lambda: one_piece(body[: json_depth.PIECE]), read_numbers, below=0.25) < 0.25


def one_piece(body):
    """Look at one piece, as a loop does before it lets others run."""
    json_depth.is_deeper(body + b"[" * 200, 100_000)
    for piece in json_depth.pieces(body, 0):
        json_depth.levels(piece.outside, 0)


@pytest.mark.thorough
def test_eight_mib_of_brackets_are_cut_in_time_that_grows_with_their_size():
    body = b'{"messages":[' + b"[" * (8 << 20)

    assert batch_publish.split_undecodable(body) is None
    assert ratio(lambda: batch_publish.split_undecodable(body), read_numbers, below=60) < 60


FIELDS = st.sampled_from([
    "event", "type", "id", "content", "text", "index", "turn", "duration_ms", "metadata", "args", "error",
    "output_bytes", "demo", "tool_call_id", "sender", "unheard_of",
])  # fmt: skip
TEXTS = st.text(max_size=6)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.just(10**400)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS | st.just({"output_id": "x"}) | st.just({"output_id": ""}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # beside other load the first draw takes seconds
@given(st.dictionaries(FIELDS, VALUES, max_size=6))
def test_fields_of_other_types_are_read_as_pythons_own_reader_reads_them(fields):
    body = json.dumps(fields).encode("utf-8", "surrogatepass")

    quickly, slowly = payload._parse_leniently(body), payload._fitted(payload._read_slowly(body))

    assert plain(quickly) == plain(slowly)


def test_a_number_that_nothing_holds_is_left_in_the_body():
    parsed = payload.parse(b'{"event":"log","index":1e999,"turn":123456789012345678901234567890,"duration_ms":-1e999}')

    assert (parsed.event, parsed.index, parsed.turn, parsed.duration_ms) == ("log", None, None, None)


def plain(parsed):
    """Return the fields of what was read, JSON values decoded."""
    fields = msgspec.structs.asdict(parsed)
    return {
        name: json.loads(bytes(value)) if isinstance(value, msgspec.Raw) else value for name, value in fields.items()
    }


@pytest.mark.parametrize("shape", ["[],", '"",', "1,", "1.5e3,", '{"a":1},'])
def test_a_large_value_of_another_type_is_passed_over(shape):
    body = b'{"event":"log","index":[' + (shape * ((1 << 20) // len(shape) - 50)).encode().rstrip(b",") + b"]}"

    parsed = payload._parse_leniently(body)

    assert (parsed.event, parsed.index) == ("log", None)
    assert ratio(lambda: payload._parse_leniently(body), read_numbers, below=0.5) < 0.5


def test_lines_are_found_between_blank_ones_of_any_length(monkeypatch):
    monkeypatch.setattr(batch_publish, "BLANK", 3)

    assert batch_publish.lines_of(b"\n \n\n\t a\n\r\n" + b" " * 20 + b"bb c \n\nddd") == [b"a", b"bb c ", b"ddd"]


def test_eight_mib_of_empty_lines_are_none():
    body = b"\n" * (8 << 20)

    assert batch_publish.lines_of(body) == []
    assert ratio(lambda: batch_publish.lines_of(body), read_numbers, below=2) < 2


def nested(levels):
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


def of_size(size):
    return b'{"a":"' + b"x" * (size - 8) + b'"}'


@pytest.mark.parametrize(("make", "most"), [(nested, 100), (of_size, 1 << 20)])
def test_a_payload_has_so_many_levels_and_bytes_and_no_more(make, most):
    payload.parse(make(most))

    with pytest.raises(TooLarge):
        payload.parse(make(most + 1))
