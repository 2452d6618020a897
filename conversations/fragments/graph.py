"""A graph of agents as a column of boxes with arcs beside them: forward ones at the right, those back at the left.

It is as narrow as a telephone whatever its shape, and cycles need no special case. Plain numbers for an SVG.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from conversations.fragments.who import Who

STEP = 48  # px between two boxes
BOX = (84, 184, 30)  # x, width, height
WIDTH = 352
LETTERS = 25  # of a name; the whole one is its title
_BULGE = (24, 72)  # px of an arc: at least, at most


class Node(NamedTuple):
    """A box: its middle `y`, the name as it fits, the face it has everywhere."""

    y: int
    label: str
    face: Who
    is_entry: bool


class Arc(NamedTuple):
    """A handoff: the path, the head of its arrow, in words, and the hue of who gives."""

    path: str
    head: str
    words: str
    hue: int | None


class Graph(NamedTuple):
    """Everything of the drawing; `width` and `height` in px."""

    nodes: list[Node]
    arcs: list[Arc]
    width: int
    height: int


def graph_of(agents: Sequence[tuple[str, Who]], edges: Iterable[tuple[str, str]], entries: Sequence[str]) -> Graph:
    """Draw agents in the order in which a conversation may reach them from the entries, then the others."""
    faces = dict(agents)
    links = [(a, b) for a, b in dict.fromkeys(edges) if a in faces and b in faces]
    order = _order(list(faces), links, entries)
    place = {name: at * STEP + STEP // 2 for at, name in enumerate(order)}
    nodes = [Node(place[name], _label(faces[name].title), faces[name], name in entries) for name in order]
    arcs = [_arc(place[a], place[b], faces[a], faces[b]) for a, b in links]
    return Graph(nodes, arcs, WIDTH, max(1, len(order)) * STEP)


def _order(names: list[str], links: Sequence[tuple[str, str]], entries: Sequence[str]) -> list[str]:
    found = dict.fromkeys(entries)
    for name in (waiting := [*found]):
        for giver, taker in links:
            if giver == name and taker not in found:
                found[taker] = None
                waiting.append(taker)
    return [*found, *(name for name in names if name not in found)]


def _arc(start: int, end: int, giver: Who, taker: Who) -> Arc:
    x, width, _ = BOX
    least, most = _BULGE
    words = f"{giver.title} hands off to {taker.title}"
    if start == end:
        side, out = x + width, least
        path = f"M{side} {start - 6}C{side + out} {start - 14},{side + out} {start + 14},{side} {start + 6}"
        return Arc(path, _head(side, start + 6, 1), words, giver.hue)
    is_forward = end > start
    side, sign = (x + width, 1) if is_forward else (x, -1)
    bulge = side + sign * min(most, least + abs(end - start) // 4)
    path = f"M{side} {start + 5 * sign}C{bulge} {start + 5 * sign},{bulge} {end - 5 * sign},{side} {end - 5 * sign}"
    return Arc(path, _head(side, end - 5 * sign, sign), words, giver.hue)


def _head(x: int, y: int, sign: int) -> str:
    return f"M{x} {y}l{7 * sign} -4v8z"


def _label(name: str) -> str:
    return name if len(name) <= LETTERS else name[: LETTERS - 1] + "…"
