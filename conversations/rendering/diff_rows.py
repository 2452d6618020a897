"""Draw the differences between two values; every text from a team, a model or a person is escaped by the renderer."""

from typing import NamedTuple

from markupsafe import Markup

from conversations.core import json_diff
from conversations.core.json_diff import TextPart, ValueChange
from conversations.rendering import richtext

SIGNS = {"changed": "±", "added": "+", "removed": "−"}

Pieces = list[tuple[Markup, bool]]  # of a text, and whether each is this side's own
Side = Pieces | None  # None: the path is not there


class DiffRow(NamedTuple):
    """One difference."""

    path: Markup
    kind: str
    sign: str
    before: Side
    after: Side


class RenderedDiff(NamedTuple):
    """Differences for `partials/differences.html`."""

    rows: list[DiffRow]
    same: int
    is_cut: bool


def draw(before: str, after: str) -> RenderedDiff:
    """Draw the differences between two JSON texts."""
    result = json_diff.diff(before, after)
    return RenderedDiff([draw_row(change, _path(change.path)) for change in result.changes], result.same, result.is_cut)


def draw_texts(before: str, after: str) -> tuple[Pieces, Pieces]:
    """Draw two texts in full; line breaks are kept."""
    first, second = (_side(parts) or [] for parts in json_diff.text_parts(before, after))
    return first, second


def draw_row(change: ValueChange, path: str) -> DiffRow:
    """Draw one difference at a shortened path."""
    sides = _side(change.before), _side(change.after)
    return DiffRow(richtext.inline(path), change.kind, SIGNS[change.kind], *sides)


def _path(path: str) -> str:
    """Return a path without the leading `$`, unless it is the whole value."""
    short = path.removeprefix("$.").removeprefix("$")
    return (short.strip() or "the whole value")[-300:]


def _side(parts: tuple[TextPart, ...] | None) -> Side:
    return None if parts is None else [(richtext.inline(part.text), part.is_own) for part in parts]
