"""The differences between two JSON values, path by path: of calls' arguments, outputs, errors, and of schemas. No
Django.

Values are compared as JSON: 1, 1.0, "1" and true are four values. The order of keys does not matter; items of lists are
matched first, so that one more at the front is one difference. Two texts that are both JSON objects or lists are
compared as such, other long texts word by word. Bounded in size and time: what was not compared is reported, never
guessed.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice, zip_longest
from typing import Any, Literal, NamedTuple

MAX_DIFFERENCES = 200  # differences
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


class TextPart(NamedTuple):
    """A piece of a text: on both sides, on one side only, or omitted because it is equal."""

    text: str
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One difference; a side is None if the path does not exist there. Sides are pieces of JSON, or of a long text."""

    path: str
    kind: Kind
    before: tuple[TextPart, ...] | None
    after: tuple[TextPart, ...] | None


@dataclass(slots=True)
class JsonDiff:
    """All differences in order. `same` counts equal values; `is_cut`: there may be more differences than were looked
    for."""

    changes: list[ValueChange] = field(default_factory=list)
    same: int = 0
    is_cut: bool = False

    @property
    def is_none(self) -> bool:
        """Return whether the two are equal."""
        return not self.changes and not self.is_cut


def diff(before: str, after: str) -> JsonDiff:
    """Return the differences between two JSON texts; text that is not JSON is compared as text."""
    return _Walk().diff(_read(before), _read(after), "$")


def text_parts(before: str, after: str) -> tuple[tuple[TextPart, ...], tuple[TextPart, ...]]:
    """Return two texts in pieces, in full; those that the other does not have are marked. Long ones that have little in
    common are marked from the first difference to the last."""
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    middles = before[head : len(before) - tail], after[head : len(after) - tail]
    old, new = (_WORD.findall(middle) for middle in middles)
    opcodes = [("replace", 0, len(old), 0, len(new))]
    if len(old) * len(new) <= WORK:
        opcodes = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    left, right = [TextPart(before[:head])], [TextPart(before[:head])]
    for tag, a, b, c, d in opcodes:
        left.append(TextPart("".join(old[a:b]), is_own=tag != "equal"))
        right.append(TextPart("".join(new[c:d]), is_own=tag != "equal"))
    rest = TextPart(before[len(before) - tail :])
    return tuple(part for part in (*left, rest) if part.text), tuple(part for part in (*right, rest) if part.text)


def schema_diff(before: Any, after: Any) -> JsonDiff:
    """Return the differences between two decoded schemas. The order of a list of names does not matter, other lists are
    compared by position, texts as a whole."""
    return _SchemaWalk().diff(before, after, "")


def paired(opcodes: Iterable[tuple[str, int, int, int, int]]) -> Iterator[tuple[int | None, int | None]]:
    """Yield which item of one sequence corresponds to which of the other, in order; None for items without one."""
    for _, left, left_end, right, right_end in opcodes:
        yield from zip_longest(range(left, left_end), range(right, right_end))


class _Walk:
    """Walks two values within budgets."""

    max_depth = DEPTH

    def __init__(self) -> None:
        self.same, self.is_cut = 0, False
        self._nodes, self._work, self._keys = NODES, WORK, 4 * INSIDE

    def diff(self, before: Any, after: Any, path: str) -> JsonDiff:
        """Return the differences between two values."""
        changes = list(islice(self.values(before, after, path, 0), MAX_DIFFERENCES + 1))
        return JsonDiff(changes[:MAX_DIFFERENCES], self.same, self.is_cut or len(changes) > MAX_DIFFERENCES)

    def values(self, before: Any, after: Any, path: str, depth: int) -> Iterator[ValueChange]:
        """Yield the differences between two values at the same path."""
        self._nodes -= 1
        if self._nodes < 0:
            self.is_cut = True
        elif depth > self.max_depth:
            yield from self._whole(before, after, path)
        elif isinstance(before, dict) and isinstance(after, dict):
            yield from self._objects(before, after, path, depth)
        elif isinstance(before, list) and isinstance(after, list):
            yield from self._lists(before, after, path, depth)
        elif type(before) is str and type(after) is str:  # a number is a `_Number`
            yield from self._texts(before, after, path, depth)
        else:
            yield from self._whole(before, after, path)

    def _whole(self, before: Any, after: Any, path: str) -> Iterator[ValueChange]:
        old, new = _json(before), _json(after)
        if old == new == TOO_DEEP:
            self.is_cut = True
        elif old == new:
            self.same += 1
        else:
            yield ValueChange(path, "changed", _clipped(old), _clipped(new))

    def _objects(self, before: dict[str, Any], after: dict[str, Any], path: str, depth: int) -> Iterator[ValueChange]:
        self.same += not before and not after
        for key in dict.fromkeys([*before, *after]):
            yield from self._pair(before.get(key, _MISSING), after.get(key, _MISSING), self._step(path, key), depth)
            if self.is_cut:
                return

    def _lists(self, before: list[Any], after: list[Any], path: str, depth: int) -> Iterator[ValueChange]:
        self.same += not before and not after
        for old, new in self._matched(before, after):
            left = before[old] if old is not None else _MISSING
            right = after[new] if new is not None else _MISSING
            yield from self._pair(left, right, f"{path}[{old if new is None else new}]", depth)
            if self.is_cut:
                return

    def _step(self, path: str, key: str) -> str:
        return f"{path}.{key}" if _NAME.fullmatch(key) else f"{path}[{json.dumps(key[:80], ensure_ascii=False)}]"

    def _pair(self, before: Any, after: Any, path: str, depth: int) -> Iterator[ValueChange]:
        if before is _MISSING:
            yield ValueChange(path, "added", None, _clipped(_json(after)))
        elif after is _MISSING:
            yield ValueChange(path, "removed", _clipped(_json(before)), None)
        else:
            yield from self.values(before, after, path, depth + 1)

    def _matched(self, before: list[Any], after: list[Any]) -> Iterator[tuple[int | None, int | None]]:
        """Yield which item of one list corresponds to which of the other; by position if matching would take too
        long."""
        old, new = self._keys_of(before), self._keys_of(after)
        if old is None or new is None:
            old, new = [""] * len(before), [""] * len(after)
        head = _common(old, new)
        tail = _common(old[head:][::-1], new[head:][::-1])
        left, right = old[head : len(old) - tail], new[head : len(new) - tail]
        yield from ((n, n) for n in range(head))
        for left_index, other in paired(self._opcodes(left, right)):
            yield (None if left_index is None else head + left_index), (None if other is None else head + other)
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

    def _texts(self, before: str, after: str, path: str, depth: int) -> Iterator[ValueChange]:
        if before == after:
            self.same += 1
            return
        inner = _inside(before), _inside(after)
        if None not in inner:
            yield from self.values(*inner, f"{path} as JSON", depth + 1)
        elif max(len(before), len(after)) <= SHORT:
            yield from self._whole(before, after, path)
        else:
            yield ValueChange(path, "changed", *self._by_words(before, after))

    def _by_words(self, before: str, after: str) -> tuple[tuple[TextPart, ...], tuple[TextPart, ...]]:
        head = _common(before, after)
        tail = _common(before[head:][::-1], after[head:][::-1])
        lead = before[max(0, head - AROUND) : head]
        rest = before[len(before) - tail :][:AROUND]
        left, right = before[head : len(before) - tail], after[head : len(after) - tail]
        old, new = _WORD.findall(left[:TEXT]), _WORD.findall(right[:TEXT])
        sides: tuple[list[TextPart], list[TextPart]] = ([], [])
        for tag, a, b, c, d in self._opcodes(old, new):
            for side, tokens in zip(sides, (old[a:b], new[c:d]), strict=True):
                side.append(TextPart("".join(tokens), is_own=tag != "equal"))
        ends = (left, right)
        return (
            _framed(lead, sides[0], rest, head > AROUND, tail > AROUND or len(ends[0]) > TEXT),
            _framed(lead, sides[1], rest, head > AROUND, tail > AROUND or len(ends[1]) > TEXT),
        )


class _SchemaWalk(_Walk):
    """Walks two schemas, to the depth that the record stores."""

    max_depth = 100

    def _step(self, path: str, key: str) -> str:
        return f"{path}.{key}" if path else key

    def _lists(self, before: list[Any], after: list[Any], path: str, depth: int) -> Iterator[ValueChange]:
        if any(isinstance(item, dict | list) for item in (*before, *after)):
            yield from super()._lists(before, after, path, depth)
            return
        old, new = [_json(item) for item in before], [_json(item) for item in after]
        yield from (ValueChange(f"{path}[]", "removed", _clipped(item), None) for item in old if item not in new)
        yield from (ValueChange(f"{path}[]", "added", None, _clipped(item)) for item in new if item not in old)

    def _matched(self, before: list[Any], after: list[Any]) -> Iterator[tuple[int | None, int | None]]:
        return zip_longest(range(len(before)), range(len(after)))

    def _texts(self, before: str, after: str, path: str, depth: int) -> Iterator[ValueChange]:
        return self._whole(before, after, path)


def _framed(lead: str, own: list[TextPart], rest: str, is_cut_before: bool, is_cut_after: bool) -> tuple[TextPart, ...]:
    parts = [TextPart(f"…{lead}" if is_cut_before else lead), *own, TextPart(f"{rest}…" if is_cut_after else rest)]
    return tuple(part for part in parts if part.text)


def _common(left: Any, right: Any) -> int:
    """Return the length of the common beginning of two sequences."""
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
    """Parse a text that itself is a JSON object or list; None for any other."""
    if not 2 <= len(text) <= INSIDE or text.lstrip()[:1] not in ("{", "["):
        return None
    value = _read(text)
    return value if isinstance(value, dict | list) else None


class _Number(str):
    """A number as written."""


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


def _clipped(text: str) -> tuple[TextPart, ...]:
    return (TextPart(text if len(text) <= TEXT else f"{text[:TEXT]}…", is_own=True),)
