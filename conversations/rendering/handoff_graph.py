"""A graph of agents as a column of boxes with arcs beside them: forward ones at the right, those back at the left.

It is as narrow as a telephone whatever its shape, and cycles need no special case. Plain numbers for an SVG.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from conversations.rendering.participant_marks import ParticipantMark

STEP = 48  # px between two boxes
BOX = (84, 184, 30)  # x, width, height
WIDTH = 352
LETTERS = 25  # of a name; the whole one is its title
_BULGE = (24, 72)  # px of an arc: at least, at most


class HandoffNode(NamedTuple):
    """A box: its middle `y`, the name as it fits, the face it has everywhere."""

    y: int
    label: str
    face: ParticipantMark
    is_entry: bool


class HandoffArc(NamedTuple):
    """A handoff: the path, the head of its arrow, in words, and the hue of who gives."""

    path: str
    head: str
    words: str
    hue: int | None


class HandoffGraph(NamedTuple):
    """Everything of the drawing; `width` and `height` in px."""

    nodes: list[HandoffNode]
    arcs: list[HandoffArc]
    width: int
    height: int


def graph_of(
    agents: Sequence[tuple[str, ParticipantMark]], edges: Iterable[tuple[str, str]], entries: Sequence[str]
) -> HandoffGraph:
    """Draw agents in the order in which a conversation may reach them from the entries, then the others."""
    faces = dict(agents)
    links = [(a, b) for a, b in dict.fromkeys(edges) if a in faces and b in faces]
    order = _order(list(faces), links, entries)
    offsets = {name: at * STEP + STEP // 2 for at, name in enumerate(order)}
    nodes = [HandoffNode(offsets[name], _label(faces[name].title), faces[name], name in entries) for name in order]
    arcs = [_arc(offsets[a], offsets[b], faces[a], faces[b]) for a, b in links]
    return HandoffGraph(nodes, arcs, WIDTH, max(1, len(order)) * STEP)


def _order(names: list[str], links: Sequence[tuple[str, str]], entries: Sequence[str]) -> list[str]:
    reached = dict.fromkeys(entries)
    for name in (waiting := [*reached]):
        for giver, taker in links:
            if giver == name and taker not in reached:
                reached[taker] = None
                waiting.append(taker)
    return [*reached, *(name for name in names if name not in reached)]


def _arc(start: int, end: int, giver: ParticipantMark, taker: ParticipantMark) -> HandoffArc:
    x, width, _ = BOX
    least, most = _BULGE
    label = f"{giver.title} hands off to {taker.title}"
    if start == end:
        side, out = x + width, least
        path = f"M{side} {start - 6}C{side + out} {start - 14},{side + out} {start + 14},{side} {start + 6}"
        return HandoffArc(path, _head(side, start + 6, 1), label, giver.hue)
    is_forward = end > start
    side, sign = (x + width, 1) if is_forward else (x, -1)
    bulge = side + sign * min(most, least + abs(end - start) // 4)
    path = f"M{side} {start + 5 * sign}C{bulge} {start + 5 * sign},{bulge} {end - 5 * sign},{side} {end - 5 * sign}"
    return HandoffArc(path, _head(side, end - 5 * sign, sign), label, giver.hue)


def _head(x: int, y: int, sign: int) -> str:
    return f"M{x} {y}l{7 * sign} -4v8z"


def _label(name: str) -> str:
    return name if len(name) <= LETTERS else name[: LETTERS - 1] + "…"
