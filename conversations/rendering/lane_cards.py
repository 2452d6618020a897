"""Draw one event as a short card in its sender's lane, with an arrow to its recipient's. Drawn by `LaneRenderer`.

Groups, levels and states are those of the transcript, so both views follow the same frames; texts are shortened and
link to the event in the transcript. Which lanes the arrow joins: `lanes_between`; its direction:
`dashboard/pages/lanes.py` and `static/js/lane-heads.js`; its drawing: `.arrow` in `static/css/lanes.css`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.events import registry
from conversations.events.event_type import Lane
from conversations.events.log.records import CallEvents, Cut, Stored
from conversations.events.payload import ParsedPayload
from conversations.rendering import (
    annotation_rows,
    approval_block,
    event_rows,
    lane_words,
    richtext,
    run_rows,
    timestamps,
    tool_call_block,
)
from conversations.rendering.approval_block import ApprovalBlock
from conversations.rendering.event_renderer import EventRenderer, Fragment
from conversations.rendering.event_rows import ParsedEvent, Repeat, RowFields
from conversations.rendering.participant_marks import ParticipantMark, mark_for, mark_for_name

MAX_CHARS = 220  # characters of a card
NOBODY = "system"  # whose lane it is when nobody is named


class Card(NamedTuple):
    """The context of templates/events/lane_card.html. `words` link to the event in the transcript."""

    row: RowFields
    sender: ParticipantMark
    recipient: ParticipantMark | None
    is_to_all: bool
    verb: str
    words: Markup
    facts: tuple[str, ...] = ()
    is_code: bool = False
    is_open: bool = False  # more text comes
    folds: int = 0  # the output right before it, which says the same and is not drawn beside it
    run: str = ""
    note: Markup | None = None  # what stands under the event that it is about
    sign: str = ""  # the word for the state, where it has to be shown
    gate: ApprovalBlock | None = None  # of a call: the approval request that is no longer open


SPEECH = registry.names_with("speech")
CALLS = registry.names_with("opens_call")  # they point at the lane of their tool
TOOLS = mark_for_name("Tools", "tool")._replace(key="server:", title="Tools of no MCP server")
_SIGNS = {"failed": "failed", "rejected": "stopped", "unknown": "outcome unknown"}


class LaneRenderer(EventRenderer):
    """Draws events as cards in lanes. Events inside a call have cards of their own, in their agent's lane."""

    cache_variant = "lanes"

    def draw(self, event: Stored, call: CallEvents | None = None, ended: Sequence[CallEvents] = ()) -> Fragment:
        """Draw the next event; the fragment's `ends` say in whose lane it is."""
        drawn = super().draw(event, call, ended)
        return drawn._replace(within="", ends=lanes_between(event, call) if drawn.html or drawn.opens else None)

    def open_block(self, group: str, text: str, event: Stored, cut: Cut | None = None) -> Markup:
        """Draw the card of a turn that is still being written."""
        notes = (f"{cut.events:,} earlier events not shown",) if cut else ()
        row = event_rows.row(event_rows.parse_event(event), "chat", state="running", group=group)
        return _draw(_card(row, event, None, text=richtext.inline(text))._replace(is_open=True, facts=notes))

    def _render_event(self, event: Stored, group: str | None, repeat: Repeat) -> Markup:
        return _draw(_of_event(event, group, repeat))

    def _render_call(self, call: CallEvents, group: str | None) -> Markup:
        return _draw(_of_call(call, group))

    def _failed(self, event: Stored) -> Markup:
        bare = event_rows.ParsedEvent(event, ParsedPayload(), {})
        return _draw(_card(event_rows.row(bare, "all"), event, None, text=richtext.one_line(event.body, MAX_CHARS)))


def ends(event: Stored, call: CallEvents | None) -> tuple[ParticipantMark, ParticipantMark | None]:
    """Return whose event it is, and for whom, if anybody: a call is its agent's, and that of a server's tool is for the
    server."""
    read = event_rows.parse_event(call.called if call else event)
    name = read.payload.speaker if call else _sender(read)
    sender, recipient = mark_for(name or NOBODY, read.event.principal), _recipient(read)
    if read.payload.mcp_server and read.event.kind in CALLS:
        return sender, mark_for_name(read.payload.mcp_server, "system")._replace(
            key=hidden_characters.spelled_out(f"server:{recipient}")
        )
    return sender, mark_for(recipient) if recipient else None


def lanes_between(event: Stored, call: CallEvents | None) -> tuple[ParticipantMark, ParticipantMark | None]:
    """Return the owner of the lane in which an event is drawn, and of the lane to which its arrow points, if any.

    A call points at its tool: each MCP server has a lane, all other tools share one, however many there are.
    """
    sender, recipient = ends(event, call)
    if not call and event.kind not in CALLS:
        return sender, recipient
    if recipient is None:
        return sender, TOOLS
    return sender, recipient._replace(kind="tool", title=f"MCP server {recipient.title}")


def _draw(card: Card) -> Markup:
    return event_rows.render("lane_card", card)


def _card(
    row: RowFields, event: Stored, call: CallEvents | None, *, text: Markup, verb: str = "", code: bool = False
) -> Card:
    sender, recipient = lanes_between(event, call)
    read = event_rows.parse_event(call.called if call else event)
    is_to_all = recipient is None and event_rows.is_to_all(read)
    card = Card(row, sender, recipient, is_to_all, verb, text, is_code=code, sign=_SIGNS.get(row.state, ""))
    return card._replace(run=hidden_characters.spelled_out(event.run or ""))


def _of_event(event: Stored, group: str | None, repeat: Repeat) -> Card:
    read = event_rows.parse_event(event)
    event_type = registry.find(event.kind)
    if event_type is None or (lane := event_type.lane) is None or not read.body:
        row = event_rows.row(read, "all", group=group, sender=_sender(read) or NOBODY)
        kind = hidden_characters.spelled_out(event.kind[:64])
        return _card(row, event, None, text=richtext.one_line(event.body, MAX_CHARS), verb=kind, code=True)
    is_claim = event_rows.is_claim(read)
    is_mild = is_claim or lane_words.is_withdrawal(read)
    state = "" if is_mild else event_type.state
    is_echo = repeat == "same" and event.kind == "user_message"
    level = "all" if is_echo else event_type.level
    person = _person_behind(read, _sender(read))
    principal = "system" if person else None
    row = event_rows.row(read, level, state=state, group=group, sender=_sender(read) or NOBODY, principal=principal)
    notes = (
        " ".join(filter(None, (run_rows.after_decision(read), person))),
        _duration(read),
        event_rows.CLAIM if is_claim else "",
        "again" if repeat == "named" else "",
    )
    card = _card(row, event, None, text=_words(read, lane), verb=lane_words.verb(read, lane))
    card = card._replace(note=annotation_rows.item_of(read) if "shown_under_event" in event_type.traits else None)
    return card._replace(
        facts=tuple(filter(None, notes)), folds=event.seq - 1 if repeat == "same" and not is_echo else 0
    )


def _of_call(call: CallEvents, group: str | None) -> Card:
    called, block = event_rows.parse_event(call.called), tool_call_block.brief(call)
    is_loud = call.status in tool_call_block.LOUD
    person = _person_behind(called, called.payload.speaker)
    row = event_rows.row(
        called, "chat" if is_loud else "steps", state=block.state, group=group, principal="system" if person else None
    )
    parts = [block.name, block.preview]
    text = Markup(" ").join(richtext.one_line(part, MAX_CHARS) for part in parts if part)
    card = _card(row, call.called, call, text=text, code=True)
    ended = (block.word, f"replay {person}" if person else "", timestamps.duration(call.duration_ms), block.came)
    request = (
        approval_block.of_call(call, event_rows.parse_event(call.approval_request)) if call.approval_request else None
    )
    gate = request if request and request.decided else None
    return card._replace(facts=tuple(filter(None, ended)), sign="", verb="calls", gate=gate)


def _person_behind(read: ParsedEvent, sender: str) -> str:
    """Return "by NAME" where a person had something happen that is about an agent: nothing was spoken in its name."""
    kind, _, person = read.event.principal.partition(":")
    is_about_another = kind == "user" and sender != read.event.principal
    return f"by {hidden_characters.spelled_out(person)}" if is_about_another and read.event.kind not in SPEECH else ""


def _sender(read: ParsedEvent) -> str:
    """Return the owner of an event's lane: its author, as in the transcript, or whom the event is about."""
    event, parsed, body = read
    if event.kind == "agent.handoff":
        return event_rows.agent(event_rows.line(body.get("from_agent")) or parsed.agent)
    if event.kind == "conversation.handler":
        return event_rows.agent(event_rows.line(body.get("handler")))
    return event_rows.author(read)


def _recipient(read: ParsedEvent) -> str:
    if read.event.kind == "agent.handoff":
        return event_rows.agent(event_rows.line(read.body.get("to_agent")))
    if read.event.kind in CALLS:
        return read.payload.mcp_server or ""
    return "" if event_rows.is_to_all(read) else read.payload.recipient or ""


def _words(read: ParsedEvent, lane: Lane) -> Markup:
    text = lane_words.text(read, lane)
    return richtext.one_line(text.replace("_", " ") if lane.field == "stage" else text, MAX_CHARS)


def _duration(read: ParsedEvent) -> str:
    return timestamps.duration(read.payload.duration_ms) if read.event.kind in ("run.done", "model.turn") else ""
