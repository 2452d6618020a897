"""Who spoke to whom as shapes of an SVG: people at the left, agents in a ring, tools at the right. No query, no colour.

Plain numbers; the table beside the drawing says the same in words.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import cos, hypot, log2, pi, sin
from typing import Literal, NamedTuple

from conversations.core import hidden_characters
from conversations.events.log.records import Stored
from conversations.rendering import event_rows
from conversations.rendering.lane_cards import ends
from conversations.rendering.participant_marks import ParticipantMark, mark_for, mark_for_name

Sort = Literal["message", "handoff", "call"]
Point = tuple[float, float]

WIDTH = 960
DRAWN = 16  # voices and tools; the others are in the table alone
ROWS = 200  # of the table
LETTERS = 16  # of a name; the whole one is its title
_RADIUS = 24.0  # px kept free around the middle of a voice
_BELOW = 44.0  # px below it, for its name
_BEND = 0.16  # of an edge's length, to the left of its way: so that there and back are two
_PEOPLE, _MIDDLE, _TOOLS = 110.0, 480.0, 850.0
_APART = 84.0  # px between two of a column
WORDS: dict[Sort, str] = {"message": "messages", "handoff": "hands off", "call": "calls"}


class Edge(NamedTuple):
    """So many times one did something to another."""

    giver: ParticipantMark
    taker: ParticipantMark
    sort: Sort
    times: int

    @property
    def what(self) -> str:
        """Return what it is."""
        return WORDS[self.sort]


class InteractionNode(NamedTuple):
    """A voice or a tool where it is drawn; `label` is its name as it fits."""

    x: float
    y: float
    face: ParticipantMark
    label: str
    is_tool: bool


class InteractionArc(NamedTuple):
    """An edge as it is drawn: its path, the head of its arrow, where its number stands, how wide it is."""

    edge: Edge
    path: str
    head: str
    x: float
    y: float
    width: float
    words: str


class Drawing(NamedTuple):
    """Everything of the picture; `more` are voices and tools that it leaves out."""

    nodes: list[InteractionNode]
    arcs: list[InteractionArc]
    width: int
    height: int
    more: int


def edges_of(events: Iterable[Stored], calls: Counter[tuple[str, str]]) -> list[Edge]:
    """Count who did what to whom, the most frequent first."""
    counted: Counter[tuple[ParticipantMark, ParticipantMark, Sort]] = Counter()
    for event in events:
        giver, taker = ends(event, None)
        if taker is None and event_rows.is_to_all(event_rows.read(event)):
            taker = mark_for_name(event_rows.EVERYBODY, "system")
        if taker is not None and taker.key:
            counted[giver, taker, "message" if event.kind == "message" else "handoff"] += 1
    for (agent, tool), times in calls.items():
        counted[mark_for(event_rows.agent(agent) or "system"), _tool(tool), "call"] += times
    return [Edge(*between, times) for between, times in counted.most_common()]


def drawing_of(edges: Sequence[Edge]) -> Drawing:
    """Place the voices and tools that are in most of it, and draw what is between them."""
    weights: Counter[ParticipantMark] = Counter()
    for edge in edges:
        for face in (edge.giver, edge.taker):
            weights[face] += edge.times
    shown = [face for face, _ in weights.most_common(DRAWN)]
    nodes, height = _nodes(shown, {edge.taker for edge in edges if edge.sort == "call"})
    at = {node.face: (node.x, node.y) for node in nodes}
    arcs = [_arc(edge, at[edge.giver], at[edge.taker]) for edge in edges if edge.giver in at and edge.taker in at]
    return Drawing(nodes, arcs, WIDTH, height, len(weights) - len(shown))


def _tool(name: str) -> ParticipantMark:
    return mark_for_name(name, "system")._replace(key=hidden_characters.spelled_out(f"tool:{name}"))


def _nodes(shown: Sequence[ParticipantMark], tools: set[ParticipantMark]) -> tuple[list[InteractionNode], int]:
    right = [face for face in shown if face in tools]
    ring = [face for face in shown if face.kind == "agent"]
    left = [face for face in shown if face.kind != "agent" and face not in tools]
    height = max(380.0, _APART * (max(len(left), len(right), (len(ring) + 1) // 2 + 1) + 0.5))
    nodes = [_node(face, point, face in tools) for face, point in _column(left, _PEOPLE, height)]
    nodes += [_node(face, point, True) for face, point in _column(right, _TOOLS, height)]
    nodes += [_node(face, point, False) for face, point in _ring(ring, height)]
    return nodes, round(height)


def _node(face: ParticipantMark, point: Point, is_tool: bool) -> InteractionNode:
    label = face.title if len(face.title) <= LETTERS else face.title[: LETTERS - 1] + "…"
    return InteractionNode(round(point[0], 1), round(point[1], 1), face, label, is_tool)


def _column(faces: Sequence[ParticipantMark], x: float, height: float) -> list[tuple[ParticipantMark, Point]]:
    return [(face, (x, height * (n + 0.5) / len(faces))) for n, face in enumerate(faces)]


def _ring(faces: Sequence[ParticipantMark], height: float) -> list[tuple[ParticipantMark, Point]]:
    """Begin at the left, beside the people, and go round as a clock does."""
    wide, high = (0.0, 0.0) if len(faces) == 1 else (240.0, height / 2 - 64)
    turns = [pi + 2 * pi * n / len(faces) for n in range(len(faces))]
    places = [(_MIDDLE + wide * cos(turn), height / 2 + high * sin(turn)) for turn in turns]
    return list(zip(faces, places, strict=True))


def _arc(edge: Edge, start: Point, end: Point) -> InteractionArc:
    width = round(1.2 + min(3.0, log2(edge.times) / 2), 1)
    label = f"{edge.giver.title} {_verb(edge)} {edge.taker.title}, {edge.times:,} times"
    if start == end:
        x, y = start[0], start[1] - _RADIUS
        path = f"M{x - 8:.1f} {y:.1f}C{x - 30:.1f} {y - 36:.1f},{x + 30:.1f} {y - 36:.1f},{x + 8:.1f} {y:.1f}"
        return InteractionArc(
            edge, path, _head((x + 18, y - 22), (x + 8, y)), round(x, 1), round(y - 27, 1), width, label
        )
    (x1, y1), (x2, y2) = start, end
    bend = {"message": _BEND, "handoff": _BEND * 1.6, "call": _BEND / 2}[edge.sort]
    middle = ((x1 + x2) / 2 + (y2 - y1) * bend, (y1 + y2) / 2 - (x2 - x1) * bend)
    begin, tip = _edge_of(start, middle), _edge_of(end, middle)
    path = f"M{begin[0]:.1f} {begin[1]:.1f}Q{middle[0]:.1f} {middle[1]:.1f},{tip[0]:.1f} {tip[1]:.1f}"
    x, y = (begin[0] + 2 * middle[0] + tip[0]) / 4, (begin[1] + 2 * middle[1] + tip[1]) / 4
    return InteractionArc(edge, path, _head(middle, tip), round(x, 1), round(y, 1), width, label)


def _verb(edge: Edge) -> str:
    return {"message": "to", "handoff": "hands off to", "call": "calls"}[edge.sort]


def _edge_of(start: Point, there: Point) -> Point:
    """Return where a line to `there` leaves a voice and its name."""
    is_below = there[1] - start[1] > abs(there[0] - start[0]) * 0.6
    return _towards(start, there, _BELOW if is_below else _RADIUS)


def _towards(start: Point, there: Point, by: float) -> Point:
    far = hypot(there[0] - start[0], there[1] - start[1]) or 1.0
    return start[0] + (there[0] - start[0]) * by / far, start[1] + (there[1] - start[1]) * by / far


def _head(origin: Point, tip: Point) -> str:
    """Draw the head of an arrow that comes from `origin`."""
    back = _towards(tip, origin, 9.0)
    aside = (-(tip[1] - back[1]) * 0.45, (tip[0] - back[0]) * 0.45)
    left, right = (back[0] + aside[0], back[1] + aside[1]), (back[0] - aside[0], back[1] - aside[1])
    return f"M{tip[0]:.1f} {tip[1]:.1f}L{left[0]:.1f} {left[1]:.1f}L{right[0]:.1f} {right[1]:.1f}z"
