"""Who spoke to whom as an SVG: people at the left, then agents, and tools behind the agents that call them.

Plain numbers, no query, no color; the table beside the drawing says the same in words.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log2
from typing import Literal, NamedTuple

from conversations.core import hidden_characters
from conversations.events.log.interaction_counts import CallCount
from conversations.events.log.records import Stored
from conversations.events.projections.messages import SpokenMessages, mark_output, repeats_output
from conversations.rendering import event_rows, layered_layout
from conversations.rendering.lane_cards import ends
from conversations.rendering.layered_layout import Rectangle
from conversations.rendering.participant_marks import ParticipantMark, mark_for, mark_for_name

Sort = Literal["message", "handoff", "call"]
Between = tuple[ParticipantMark, ParticipantMark, Sort]

DRAWN = 24  # participants and tools, those of the strongest edges; the others on wish
MAX_PARTICIPANTS = 400  # of them at most
EDGES = 3  # drawn for each, the strongest
ROWS = 200  # of the table
LEGIBLE = 0.6  # of its own size: the least at which the picture is shown
LOW = 0.85  # the least for the sake of its height; one that is higher than TALL scrolls
TALL = 720  # px
MAX_SIZE = 1.6  # of its own, where there is room (static/js/graph-view.js)
WORDS: dict[Sort, str] = {"message": "messages", "handoff": "hands off", "call": "calls"}
EVERYONE = mark_for_name(event_rows.EVERYBODY, "system")


class Edge(NamedTuple):
    """How many times one participant did something to another, most recently at event `seq`."""

    giver: ParticipantMark
    taker: ParticipantMark
    sort: Sort
    times: int
    seq: int

    @property
    def what(self) -> str:
        """Return what was done, as text."""
        return WORDS[self.sort]

    @property
    def is_to_all(self) -> bool:
        """Return whether it stands for messages to everyone."""
        return self.taker == EVERYONE


class InteractionNode(NamedTuple):
    """A participant or a tool with its position, and what it did in words."""

    place: Rectangle
    mark: ParticipantMark
    is_tool: bool
    words: str

    @property
    def shape(self) -> str:
        """Return the path around it: agents are square, people round, tools pointed."""
        x, y, width, height = self.place
        right, low, middle = x + width, y + height, y + height / 2
        if self.is_tool:
            return f"M{x + 12} {y}H{right - 12}L{right} {middle}L{right - 12} {low}H{x + 12}L{x} {middle}z"
        corner = 8 if self.mark.kind == "agent" else height / 2
        turns = ((right, y + corner), (right - corner, low), (x, low - corner), (x + corner, y))
        sides = (f"V{low - corner}", f"H{x + corner}", f"V{y + corner}", "z")
        steps = (f"A{corner} {corner} 0 0 1 {to[0]} {to[1]}{side}" for to, side in zip(turns, sides, strict=True))
        return f"M{x + corner} {y}H{right - corner}" + "".join(steps)


class InteractionArc(NamedTuple):
    """A drawn edge: its path, arrow head, position of its number, width, and description."""

    edge: Edge
    path: str
    head: str
    label: Rectangle
    width: float
    words: str


class Drawing(NamedTuple):
    """The whole drawing; `more` participants and tools are left out, `more_edges` between drawn ones."""

    nodes: list[InteractionNode]
    arcs: list[InteractionArc]
    width: float
    height: float
    more: int
    more_edges: int

    @property
    def least(self) -> int:
        """Return the smallest width at which all of it is shown at once; smaller text would be unreadable."""
        return round(self.width * LEGIBLE)

    @property
    def least_height(self) -> int:
        """Return the smallest height of the room in which it is shown."""
        return round(self.height if self.height > TALL else self.height * LOW)

    @property
    def largest(self) -> tuple[int, int]:
        """Return the width and height at which it is shown in a large room."""
        return round(self.width * MAX_SIZE), round(self.height * MAX_SIZE)


def edges_of(spoken: Mapping[int, Between], calls: Iterable[CallCount]) -> list[Edge]:
    """Count the edges, the most frequent first."""
    counted: Counter[Between] = Counter()
    newest: dict[Between, int] = {}
    for seq, between in spoken.items():
        counted[between] += 1
        newest[between] = seq
    for call in calls:
        counted[between := between_of_call(call.agent, call.tool)] += call.times
        newest[between] = max(call.seq, newest.get(between, 0))
    return [Edge(*between, times, newest[between]) for between, times in counted.most_common()]


def betweens(events: Iterable[Stored]) -> dict[int, Between]:
    """Return the ends of messages, outputs, requests of clients, and handoffs, by seq.

    An output has no recipient: it is for whoever spoke last before it and is no agent, else for everyone. One that an
    envelope repeats is counted as that envelope, which names its recipient; what is said inside a call is not counted.
    """
    spoken: dict[int, Between] = {}
    last, output, repeatable = EVERYONE, 0, ""
    messages = SpokenMessages()
    for event in events:
        read = event_rows.parse_event(event)
        if messages.is_echo(event.seq, event.kind, read.payload):
            continue
        if event.kind == "output" and not read.body.get("parent_call"):
            giver = ends(event, None)[0]
            spoken[event.seq] = giver, last, "message"
            output, repeatable = event.seq, mark_output(read.payload.speaker, read.payload.words)
        elif event.kind != "output" and (between := _between_of(read)):
            if event.kind == "message" and repeats_output(read.payload, repeatable):
                spoken.pop(output, None)
            spoken[event.seq] = between
            last = between[0] if between[2] == "message" and between[0].kind != "agent" else last
            repeatable = ""
    return spoken


def _between_of(read: event_rows.ParsedEvent) -> Between | None:
    """Return the ends of a message or a handoff; a message that names no recipient is for everyone."""
    giver, taker = ends(read.event, None)
    if read.event.kind != "agent.handoff":
        return giver, taker if taker and taker.key else EVERYONE, "message"
    return (giver, taker, "handoff") if taker and taker.key else None


def between_of_call(agent: str, tool: str) -> Between:
    """Return the ends of a tool call."""
    called = mark_for_name(tool, "system")._replace(key=hidden_characters.spelled_out(f"tool:{tool}"))
    return mark_for(event_rows.agent(agent) or "system"), called, "call"


def drawing_of(edges: Sequence[Edge], most: int = DRAWN, always: Edge | None = None) -> Drawing:
    """Draw the participants and tools of the strongest edges, and those edges; `always` is drawn in any case.

    Positions depend on the order of names, not on counts: a growing number moves nothing.
    """
    between = [edge for edge in edges if not edge.is_to_all]
    strongest = sorted(between, key=lambda edge: (edge != always, -edge.times))
    marks = dict.fromkeys(mark for edge in edges for mark in ((edge.giver,) if edge.is_to_all else edge[:2]))
    shown = _shown(strongest, marks, most)
    drawn = [edge for edge in strongest if edge.giver in shown and edge.taker in shown]
    strong = sorted(drawn[: EDGES * most], key=lambda edge: (edge.giver.key, edge.taker.key, edge.sort))
    order = {mark: n for n, mark in enumerate(sorted(shown, key=lambda mark: (mark.kind != "agent", mark.key)))}
    tools = {edge.taker for edge in between if edge.sort == "call"}
    roots = [n for mark, n in order.items() if mark.kind != "agent" and mark not in tools]
    placed = layered_layout.layout(
        len(order), [(order[edge.giver], order[edge.taker]) for edge in strong], roots, fills_room=True
    )
    did = _did(edges)
    nodes = [InteractionNode(placed.boxes[n], mark, mark in tools, did[mark]) for mark, n in order.items()]
    arcs = [_arc(edge, line) for edge, line in zip(strong, placed.lines, strict=True)]
    return Drawing(nodes, arcs, placed.width, placed.height, len(marks) - len(shown), len(drawn) - len(strong))


def _shown(edges: Iterable[Edge], marks: dict[ParticipantMark, None], most: int) -> dict[ParticipantMark, None]:
    """Return the ends of one edge after the other while there is room, then participants who only spoke to everyone."""
    shown: dict[ParticipantMark, None] = {}
    for edge in edges:
        wanted = [mark for mark in dict.fromkeys(edge[:2]) if mark not in shown]
        if len(shown) + len(wanted) <= most:
            shown.update(dict.fromkeys(wanted))
    left = [mark for mark in marks if mark not in shown]
    return shown | dict.fromkeys(left[: most - len(shown)])


def _did(edges: Iterable[Edge]) -> dict[ParticipantMark, str]:
    """Return in words how much each participant did, or how often a tool was called."""
    figures: dict[ParticipantMark, Counter[str]] = {}
    for edge in edges:
        what = (
            "to everyone"
            if edge.is_to_all
            else {"message": "sent", "handoff": "handed off", "call": "calls"}[edge.sort]
        )
        figures.setdefault(edge.giver, Counter())[what] += edge.times
        taken = figures.setdefault(edge.taker, Counter())
        if edge.sort == "call":
            taken["calls"] += edge.times
    return {mark: ", ".join(_figure(times, what) for what, times in did.items()) for mark, did in figures.items()}


def _figure(times: int, what: str) -> str:
    return f"{times:,} {'call' if what == 'calls' and times == 1 else what}"


def _arc(edge: Edge, line: layered_layout.Line) -> InteractionArc:
    width = round(1.2 + min(3.0, log2(edge.times) / 2), 1)
    verb = {"message": "to", "handoff": "hands off to", "call": "calls"}[edge.sort]
    times = f"{edge.times:,} time{'s' if edge.times > 1 else ''}"
    return InteractionArc(
        edge, line.path, line.head, line.label, width, f"{edge.giver.title} {verb} {edge.taker.title}, {times}"
    )
