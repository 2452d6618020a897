"""What differs between two JSON texts: found, complete, bounded."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from conversations.core import json_diff
from conversations.core.json_diff import MAX_DIFFERENCES, diff
from conversations.rendering import diff_rows as fragments
from tests.support.growth import ratio, read_numbers

ANY = some.recursive(
    some.none() | some.booleans() | some.integers(-5, 5) | some.floats(-2, 2) | some.text("ab{}[]\"1 ", max_size=8),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text("ab.[", max_size=2), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def changed(before: Any, after: Any) -> list[tuple[str, str, str | None, str | None]]:
    """Tell the differences of two values."""
    difference = diff(json.dumps(before, ensure_ascii=False), json.dumps(after, ensure_ascii=False))
    return [(change.path, change.kind, side(change.before), side(change.after)) for change in difference.changes]


def side(parts: tuple[json_diff.TextPart, ...] | None) -> str | None:
    """Write a side, its own pieces in brackets where there are others."""
    if parts is None or len(parts) == 1:
        return None if parts is None else parts[0].text
    return "".join(f"[{part.text}]" if part.is_own else part.text for part in parts)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": 1.0}, [("$.a", "changed", "1", "1.0")]),
        ({"a": 1}, {"a": True}, [("$.a", "changed", "1", "true")]),
        ({"a": "1"}, {"a": 1}, [("$.a", "changed", '"1"', "1")]),
        ({"a": None}, {}, [("$.a", "removed", "null", None)]),
        ({}, {"a": {"b": [1]}}, [("$.a", "added", None, '{"b": [1]}')]),
        ({"a b": 1}, {"a b": 2}, [('$["a b"]', "changed", "1", "2")]),
        ([1, 2, 3], [0, 1, 2, 3], [("$[0]", "added", None, "0")]),
        ([{"id": 1}, {"id": 2}], [{"id": 2}], [("$[0]", "removed", '{"id": 1}', None)]),
        ([{"id": 1, "x": 1}], [{"id": 1, "x": 2}], [("$[0].x", "changed", "1", "2")]),
        ([{"a": 1, "b": 2}], [0, {"b": 2, "a": 1}], [("$[0]", "added", None, "0")]),
        ('{"a": 1}', '{"a": 2}', [("$ as JSON.a", "changed", "1", "2")]),
        ("x", ["x"], [("$", "changed", '"x"', '["x"]')]),
    ],
)
def test_each_difference_is_told_with_its_path(before, after, expected):
    assert changed(before, after) == expected


def test_of_a_long_text_the_words_that_differ_are_told():
    before = "The water stands to the kerb in the underpass at Mill Street since this morning."
    after = before.replace("kerb", "second step").replace("morning", "noon")

    ((path, kind, old, new),) = changed({"text": before}, {"text": after})

    assert (path, kind) == ("$.text", "changed")
    assert "[kerb] in the underpass" in old
    assert "[second step] in the underpass" in new


def test_what_is_no_json_is_compared_as_text():
    assert [change.kind for change in diff("not json", "{not json").changes] == ["changed"]
    assert diff("not json", "not json").is_none


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(ANY, ANY)
def test_none_are_told_exactly_when_the_two_are_the_same_json(before, after):
    old, new = json.dumps(before, sort_keys=True), json.dumps(after, sort_keys=True)

    assert diff(old, new).is_none == (old == new)
    assert diff(old, old).is_none
    swapped = {"added": "removed", "removed": "added", "changed": "changed"}
    there, back = diff(old, new).changes, diff(new, old).changes
    assert sorted(swapped[change.kind] for change in there) == sorted(change.kind for change in back) or _has_list(
        before, after
    )


def _has_list(*values: Any) -> bool:
    return any("[" in json.dumps(value) for value in values)


BIG = {
    "many keys": (dict.fromkeys(map(str, range(20_000)), 1), dict.fromkeys(map(str, range(20_000)), 2)),
    "long lists": (list(range(20_000)), list(range(20_000, 0, -1))),
    "equal items": (["a", "b"] * 10_000, ["b", "a", "a"] * 7_000),
    "lists of lists": ([[n % 7 for n in range(60)]] * 900, [[n % 5 for n in range(60)]] * 900),
    "long texts": ("ab " * 100_000, "ba " * 100_000),
    "texts": (["word " * 90 + str(n) for n in range(2_000)], [f"{n}" + " word" * 90 for n in range(2_000)]),
    "json in json": (json.dumps([0] * 30_000), json.dumps([1] * 30_000)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", BIG)
def test_it_is_bounded_in_size_and_in_time(name):
    before, after = map(json.dumps, BIG[name])

    difference = diff(before, after)
    drawn = fragments.draw(before, after)

    assert ratio(lambda: fragments.draw(before, after), read_numbers, below=15) < 15
    assert difference.changes
    assert len(difference.changes) <= MAX_DIFFERENCES
    assert sum(len(piece) for row in drawn.rows for side in row[3:] for piece, _ in side or []) < 600_000


@pytest.mark.slow
def test_a_depth_without_end_costs_no_stack():
    deep = "[" * 900 + "]" * 900
    other = "[" * 900 + "1" + "]" * 900

    assert not diff(deep, other).is_none
    assert diff(json.dumps("[" * 90_000), json.dumps("[" * 90_001)).changes


def test_a_drawn_difference_holds_no_markup_of_its_texts():
    drawn = fragments.draw('{"<b>": "<script>\\u202e"}', '{"<b>": 1, "<i>": "<img src=x>"}')

    text = "".join(str(piece) for row in drawn.rows for side in row[3:] for piece, _ in side or [])
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;b&gt;" in str(drawn.rows[0].path)
