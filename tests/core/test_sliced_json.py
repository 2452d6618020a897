"""JSON decoded in slices is what it is decoded as a whole."""

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.core import sliced_json
from tests.support.growth import cpu_of, no_garbage_collection, read_numbers
from tests.support.tiers import variants

ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
texts = st.text(st.sampled_from('a"\\,:{}[] é\n\x7f'), max_size=6)
edits = st.sampled_from([b"", b",", b"]", b"}", b"[", b"{", b'"', b":", b"1", b"\\", b"x"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.just(1.5) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=30,
)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut small bodies, too."""
    monkeypatch.setattr(sliced_json, "SLICE", 4)
    monkeypatch.setattr(sliced_json, "MAX_AT_ONCE", 0)


def both(body: bytes) -> tuple[Any, Any]:
    """Decode a body in both ways; None is told for what is not JSON."""
    values = []
    for way in (msgspec.json.decode, lambda body: sliced_json.decode(body, 100)):
        try:
            values.append(("ok", way(body)))
        except ERRORS:
            values.append(("wrong", None))
    return values[0], values[1]


@pytest.mark.slow
@given(value=values, is_ascii=st.booleans(), indent=st.sampled_from([None, 0, 2]))
def test_what_is_json_is_the_same(value: Any, is_ascii: bool, indent: int | None) -> None:
    body = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()

    whole, sliced = both(body)

    assert whole == ("ok", value)
    assert sliced == whole
    assert json.dumps(sliced[1]) == json.dumps(whole[1])  # in the same order


@pytest.mark.slow
@given(value=values, changes=st.lists(st.tuples(st.integers(0, 400), edits), min_size=1, max_size=3))
def test_what_is_no_json_is_refused_as_well(value: Any, changes: list[tuple[int, bytes]]) -> None:
    body = json.dumps(value).encode()
    for place, text in changes:
        at = place % (len(body) + 1)
        body = body[:at] + text + body[at + (place % 2) :]

    whole, sliced = both(body)

    assert sliced == whole


@pytest.mark.parametrize(
    "body",
    [b"[1,2,]", b"[,1,2]", b"[1,,2]", b'{"a":1,}', b'{,"a":1}', b"[1,2,3}", b'{"a":[1,2,3}}', b"[1,2] [3,4]", b"", b" ",
     b'{"a":1,"a":2,"b":3}', b'{"a":[1,2,3,4],"a":[5,6,7,8]}', b'{"a" 1,"b":2}', b'{"a,b":[1,2,3],"c:d":{"e":[1,2]}}',
     b'{1:[2,3,4,5]}', b'{:[2,3,4,5]}', b'{"a\\\\":[2,3,4,5]}', b'{"a\\"":[2,3,4,5]}', b'["\xff,",1,2,3]', b'["a,b'],
)  # fmt: skip
def test_edges(body: bytes) -> None:
    whole, sliced = both(body)

    assert sliced == whole


def test_what_nests_too_deep_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError, match="brackets do not match"):
        sliced_json.decode(b"[" * 101 + b"]" * 101, 100)


@pytest.mark.slow
@pytest.mark.parametrize("shape", variants([b'{"a":1},', b"[],", b'"\\\\",', b"1,"]))
def test_no_call_takes_a_fifth_of_what_reading_a_mebibyte_takes(shape: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    body = b'{"model":"x","input":[' + (shape * ((1 << 20) // len(shape)))[:-1] + b"]}"
    decode = msgspec.json.decode
    calls: list[float] = []

    def watched(part: bytes) -> Any:
        before = time.thread_time()
        value = decode(part)
        calls.append(time.thread_time() - before)
        return value

    def longest() -> float:
        calls.clear()
        assert len(sliced_json.decode(body, 100)["input"]) == (1 << 20) // len(shape)
        return max(calls)

    monkeypatch.setattr(msgspec.json, "decode", watched)
    with no_garbage_collection():
        least = min(longest() for _ in range(3))
    assert 0 < least < 0.2 * min(cpu_of(read_numbers) for _ in range(5))
