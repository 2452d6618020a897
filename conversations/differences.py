"""Two JSON texts → what differs between them, path by path: of two calls' arguments, outputs, errors. No Django.

Values are compared as JSON has them: 1, 1.0, "1" and true are four values. The order of keys is no difference; items of
lists are matched first, so that one more at the front is one difference. Two texts that are both JSON objects or lists
are compared as such, other long texts word by word. Bounded in size and in time: what is beyond is told, never guessed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Literal, NamedTuple

MOST = 200  # differences
NODES = 20_000  # values looked at
DEPTH = 60  # levels looked into
TEXT = 600  # characters of a value shown
ALIGNED = 64  # items of a list, or words, that are matched with as many
WORK = 60_000  # pairs that may be compared in all
INSIDE = 256 * 1024  # characters of a text that is looked into as JSON
AROUND = 40  # characters shown before and after the part of a long text that differs
SHORT = 40  # characters; a longer text is compared by words

TOO_DEEP = "…"  # in the place of a value that cannot be written

Kind = Literal["changed", "added", "removed"]
_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")
_MISSING = object()


class Part(NamedTuple):
    """A piece of a text: on both sides, on this one alone, or left out because it is the same."""

    text: str
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; a side is None where the path is not there. Sides are pieces of JSON, or of a long text."""

    path: str
    kind: Kind
    before: tuple[Part, ...] | None
    after: tuple[Part, ...] | None


@dataclass(slots=True)
class Differences:
    """All of them in order. `same` counts values that are alike; `is_cut`: more may differ than was looked at."""

    changes: list[Change] = field(default_factory=list)
    same: int = 0
    is_cut: bool = False

    @property
    def is_none(self) -> bool:
        """Tell whether the two are the same."""
        return not self.changes and not self.is_cut


def between(before: str, after: str) -> Differences:
    """Answer what differs between two JSON texts; what is no JSON is compared as text."""
    walk = _Walk()
    found = Differences(list(islice(walk.values(_read(before), _read(after), "$", 0), MOST + 1)))
    found.same, found.is_cut = walk.same, walk.is_cut or len(found.changes) > MOST
    del found.changes[MOST:]
    return found


class _Walk:
    """Goes through two values within budgets."""

    def __init__(self) -> None:
        self.same, self.is_cut = 0, False
        self._nodes, self._work, self._keys = NODES, WORK, 4 * INSIDE

    def values(self, before: Any, after: Any, path: str, depth: int) -> Iterator[Change]:
        """Compare two values that stand at the same path."""
        self._nodes -= 1
        if self._nodes < 0:
            self.is_cut = True
        elif depth > DEPTH:
            yield from self._whole(before, after, path)
        elif isinstance(before, dict) and isinstance(after, dict):
            yield from self._objects(before, after, path, depth)
        elif isinstance(before, list) and isinstance(after, list):
            yield from self._lists(before, after, path, depth)
        elif type(before) is str and type(after) is str:  # a number is a `_Number`
            yield from self._texts(before, after, path, depth)
        else:
            yield from self._whole(before, after, path)

    def _whole(self, before: Any, after: Any, path: str) -> Iterator[Change]:
        old, new = _json(before), _json(after)
        if old == new == TOO_DEEP:
            self.is_cut = True
        elif old == new:
            self.same += 1
        else:
            yield Change(path, "changed", _clipped(old), _clipped(new))

    def _objects(self, before: dict[str, Any], after: dict[str, Any], path: str, depth: int) -> Iterator[Change]:
        self.same += not before and not after
        for key in dict.fromkeys([*before, *after]):
            yield from self._pair(before.get(key, _MISSING), after.get(key, _MISSING), _step(path, key), depth)
            if self.is_cut:
                return

    def _lists(self, before: list[Any], after: list[Any], path: str, depth: int) -> Iterator[Change]:
        self.same += not before and not after
        for old, new in self._matched(before, after):
            left = before[old] if old is not None else _MISSING
            right = after[new] if new is not None else _MISSING
            yield from self._pair(left, right, f"{path}[{old if new is None else new}]", depth)
            if self.is_cut:
                return

    def _pair(self, before: Any, after: Any, path: str, depth: int) -> Iterator[Change]:
        if before is _MISSING:
            yield Change(path, "added", None, _clipped(_json(after)))
        elif after is _MISSING:
            yield Change(path, "removed", _clipped(_json(before)), None)
        else:
            yield from self.values(before, after, path, depth + 1)

    def _matched(self, before: list[Any], after: list[Any]) -> Iterator[tuple[int | None, int | None]]:
        """Answer which item of one list goes with which of the other; by place where that would take too long."""
        old, new = self._keys_of(before), self._keys_of(after)
        if old is None or new is None:
            old, new = [""] * len(before), [""] * len(after)
        head = _common(old, new)
        tail = _common(old[head:][::-1], new[head:][::-1])
        left, right = old[head : len(old) - tail], new[head : len(new) - tail]
        yield from ((n, n) for n in range(head))
        for _, a, b, c, d in self._opcodes(left, right):
            for n in range(max(b - a, d - c)):
                one = head + a + n if a + n < b else None
                yield one, (head + c + n if c + n < d else None)
        yield from ((len(old) - n, len(new) - n) for n in range(tail, 0, -1))

    def _keys_of(self, items: list[Any]) -> list[str] | None:
        keys: list[str] = []
        for item in items:
            keys.append(_json(item, is_sorted=True))
            self._keys -= len(keys[-1])
            if self._keys < 0:
                return None
        return keys

    def _opcodes(self, old: list[str], new: list[str]) -> list[tuple[str, int, int, int, int]]:
        self._work -= len(old) * len(new)
        if len(old) > ALIGNED or len(new) > ALIGNED or self._work < 0:
            return [("replace", 0, len(old), 0, len(new))]
        return list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())

    def _texts(self, before: str, after: str, path: str, depth: int) -> Iterator[Change]:
        if before == after:
            self.same += 1
            return
        inner = _inside(before), _inside(after)
        if None not in inner:
            yield from self.values(*inner, f"{path} as JSON", depth + 1)
        elif max(len(before), len(after)) <= SHORT:
            yield from self._whole(before, after, path)
        else:
            yield Change(path, "changed", *self._by_words(before, after))

    def _by_words(self, before: str, after: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        head = _common(before, after)
        tail = _common(before[head:][::-1], after[head:][::-1])
        lead = before[max(0, head - AROUND) : head]
        rest = before[len(before) - tail :][:AROUND]
        left, right = before[head : len(before) - tail], after[head : len(after) - tail]
        old, new = _WORD.findall(left[:TEXT]), _WORD.findall(right[:TEXT])
        made: tuple[list[Part], list[Part]] = ([], [])
        for tag, a, b, c, d in self._opcodes(old, new):
            for side, words in zip(made, (old[a:b], new[c:d]), strict=True):
                side.append(Part("".join(words), is_own=tag != "equal"))
        ends = (left, right)
        return (
            _framed(lead, made[0], rest, head > AROUND, tail > AROUND or len(ends[0]) > TEXT),
            _framed(lead, made[1], rest, head > AROUND, tail > AROUND or len(ends[1]) > TEXT),
        )


def _framed(lead: str, own: list[Part], rest: str, is_cut_before: bool, is_cut_after: bool) -> tuple[Part, ...]:
    parts = [Part(f"…{lead}" if is_cut_before else lead), *own, Part(f"{rest}…" if is_cut_after else rest)]
    return tuple(part for part in parts if part.text)


def _common(left: Any, right: Any) -> int:
    """Answer how many items two sequences have in common at their beginnings."""
    most = min(len(left), len(right))
    if left[:most] == right[:most]:
        return most
    return next(n for n in range(most) if left[n] != right[n])


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except (ValueError, RecursionError):
        return text


def _inside(text: str) -> Any:
    """Read a text that is a JSON object or list itself; None for any other."""
    if not 2 <= len(text) <= INSIDE or text.lstrip()[:1] not in ("{", "["):
        return None
    found = _read(text)
    return found if isinstance(found, dict | list) else None


class _Number(str):
    """A number as it is written."""


def _json(value: Any, *, is_sorted: bool = False) -> str:
    """Write a value, its numbers as they were written."""
    try:
        return _written(value, is_sorted)
    except RecursionError:
        return TOO_DEEP


def _written(value: Any, is_sorted: bool) -> str:
    match value:
        case _Number():
            return str(value)
        case dict():
            keys = sorted(value) if is_sorted else value
            inner = (f"{json.dumps(key, ensure_ascii=False)}: {_written(value[key], is_sorted)}" for key in keys)
            return f"{{{', '.join(inner)}}}"
        case list():
            return f"[{', '.join(_written(item, is_sorted) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)


def _clipped(text: str) -> tuple[Part, ...]:
    return (Part(text if len(text) <= TEXT else f"{text[:TEXT]}…", is_own=True),)


def _step(path: str, key: str) -> str:
    if _NAME.fullmatch(key):
        return f"{path}.{key}"
    return f"{path}[{json.dumps(key[:80], ensure_ascii=False)}]"
