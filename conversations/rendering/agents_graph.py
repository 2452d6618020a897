"""The handoffs between agents as an SVG: agents that take the first message at the left, the others as many columns
further as the fewest handoffs that lead to them. Plain numbers; the agents' table says the same in words."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from conversations.rendering.layered_layout import Line, Rectangle, layout
from conversations.rendering.participant_marks import ParticipantMark

LEGIBLE = 0.6  # of its own size: the least at which the picture is shown


class HandoffNode(NamedTuple):
    """A box with the agent's mark, and whether conversations begin there."""

    place: Rectangle
    mark: ParticipantMark
    is_entry: bool


class HandoffArc(NamedTuple):
    """A handoff: its path, arrow head, description, and the hue of the agent that hands over."""

    path: str
    head: str
    words: str
    hue: int | None


class HandoffGraph(NamedTuple):
    """The whole drawing; `width` and `height` in px."""

    nodes: list[HandoffNode]
    arcs: list[HandoffArc]
    width: float
    height: float

    @property
    def least(self) -> int:
        """Return the smallest width at which all of it is shown at once, px."""
        return round(self.width * LEGIBLE)


def graph_of(
    agents: Sequence[tuple[str, ParticipantMark]], edges: Iterable[tuple[str, str]], entries: Sequence[str]
) -> HandoffGraph:
    """Draw agents and the handoffs between them; handoffs to agents outside the team are left out."""
    marks = dict(agents)
    order = {name: n for n, name in enumerate(marks)}
    links = [(a, b) for a, b in dict.fromkeys(edges) if a in marks and b in marks]
    roots = [order[name] for name in entries if name in order]
    placed = layout(len(order), [(order[a], order[b]) for a, b in links], roots)
    nodes = [HandoffNode(placed.boxes[n], marks[name], name in entries) for name, n in order.items()]
    arcs = [_arc(line, marks[a], marks[b]) for (a, b), line in zip(links, placed.lines, strict=True)]
    return HandoffGraph(nodes, arcs, placed.width, placed.height)


def _arc(line: Line, giver: ParticipantMark, taker: ParticipantMark) -> HandoffArc:
    """Draw one line through the place of its label, as a handoff has none; within a column it turns there."""
    there, _, on = line.path[1:].partition("M")
    (start, _), (x1, y1), (x2, y2) = map(
        _point, (there.partition("C")[0], there.rpartition(",")[2], on.partition("C")[0])
    )
    joint = f"A4 4 0 0 {int((x1 > start) == (y2 > y1))} " if x1 == x2 else "L"
    return HandoffArc(f"M{there}{joint}{on}", line.head, f"{giver.title} hands off to {taker.title}", giver.hue)


def _point(text: str) -> tuple[float, float]:
    x, y = text.split()
    return float(x), float(y)
