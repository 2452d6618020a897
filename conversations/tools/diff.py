"""Two JSON values → what changed between them, path by path: for two versions of a tool's schema."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

MAX_CHANGES = 200
MAX_TEXT = 600


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; None where the path is not there."""

    path: str
    before: str | None
    after: str | None


def changes(before: Any, after: Any) -> tuple[list[Change], bool]:
    """Answer the differences of two JSON values, and whether more were left out. The order of an object's keys, and of
    a list of names such as `required`, is no difference."""
    found = list(islice(_changes(before, after, ""), MAX_CHANGES + 1))
    return found[:MAX_CHANGES], len(found) > MAX_CHANGES


def _changes(before: Any, after: Any, path: str) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            inner = f"{path}.{key}" if path else str(key)
            if key not in after:
                yield Change(inner, _json(before[key]), None)
            elif key not in before:
                yield Change(inner, None, _json(after[key]))
            else:
                yield from _changes(before[key], after[key], inner)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    elif type(before) is not type(after) or before != after:
        yield Change(path, _json(before), _json(after))


def _of_lists(before: list[Any], after: list[Any], path: str) -> Iterator[Change]:
    if all(not isinstance(item, dict | list) for item in (*before, *after)):
        old, new = [_json(item) for item in before], [_json(item) for item in after]
        yield from (Change(f"{path}[]", item, None) for item in old if item not in new)
        yield from (Change(f"{path}[]", None, item) for item in new if item not in old)
        return
    for number in range(max(len(before), len(after))):
        inner = f"{path}[{number}]"
        if number >= len(after):
            yield Change(inner, _json(before[number]), None)
        elif number >= len(before):
            yield Change(inner, None, _json(after[number]))
        else:
            yield from _changes(before[number], after[number], inner)


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"
