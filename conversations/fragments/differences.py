"""What differs between two values, drawn: every text of a team, a model or a person goes through the renderer."""

from typing import NamedTuple

from markupsafe import Markup

from conversations import differences
from conversations.differences import Part
from conversations.fragments import richtext

SIGNS = {"changed": "±", "added": "+", "removed": "−"}

Side = list[tuple[Markup, bool]] | None  # pieces, and whether each is this side's own; None: the path is not there


class Row(NamedTuple):
    """One difference."""

    path: Markup
    kind: str
    sign: str
    before: Side
    after: Side


class Drawn(NamedTuple):
    """Differences for `partials/differences.html`."""

    rows: list[Row]
    same: int
    is_cut: bool


def draw(before: str, after: str) -> Drawn:
    """Draw what differs between two JSON texts."""
    found = differences.between(before, after)
    rows = [
        Row(richtext.inline(_path(one.path)), one.kind, SIGNS[one.kind], _side(one.before), _side(one.after))
        for one in found.changes
    ]
    return Drawn(rows, found.same, found.is_cut)


def _path(path: str) -> str:
    """Name a path without the sign of the whole, unless it is the whole."""
    short = path.removeprefix("$.").removeprefix("$")
    return (short.strip() or "the whole")[-300:]


def _side(parts: tuple[Part, ...] | None) -> Side:
    return None if parts is None else [(richtext.inline(part.text), part.is_own) for part in parts]
