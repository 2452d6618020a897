"""An event as a row of the outline beside a transcript: a glyph, a name, the first words. Called by the outline
page."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from markupsafe import Markup

from conversations.events import registry
from conversations.events.log.records import Stored
from conversations.rendering import event_rows, lane_cards, lane_words, richtext
from conversations.rendering.event_renderer import RepeatWatch
from conversations.rendering.participant_marks import ParticipantMark, mark_for

LETTERS = 80  # of the words of a line
Sort = Literal["turn", "agent", "approval", "failure", "control"]
BAD = registry.bad_run_ends()
ANNOTATIONS = registry.names_with("shown_under_event")


class OutlineRow(NamedTuple):
    """A row; of sort turn if a person speaks, all others are indented below."""

    seq: int
    sort: Sort
    glyph: str
    mark: ParticipantMark
    words: Markup


def rows_of(events: Iterable[Stored]) -> list[OutlineRow]:
    """Return the rows of events in order; an agent when another one continues, messages when a person speaks."""
    rows: list[OutlineRow] = []
    working, repeats = "", RepeatWatch()
    agents: dict[str, ParticipantMark] = {}  # who works, by run of ours
    for event in events:
        if repeats.of(event) and event.kind == "user_message":
            continue
        read = event_rows.parse_event(event)
        if event.kind in ANNOTATIONS and not read.payload.words:
            continue  # a thumb alone
        row = _row(read)
        if row.sort == "agent":
            if event.run and (mark := agents.get(event.run)) and event.kind == "run.started":
                row = row._replace(mark=mark)  # a further attempt continues with the agent that paused
            if event.run:
                agents[event.run] = row.mark
            if row.mark.key == working:
                continue
            working = row.mark.key
        elif row.sort == "turn" and read.payload.speaker.startswith("agent:"):
            continue
        elif row.sort == "turn":
            working = ""
        rows.append(row)
    return rows


def _row(read: event_rows.ParsedEvent) -> OutlineRow:
    event = read.event
    if event.kind in ("message", "user_message"):
        return _line(event, "turn", "", read.payload.words)
    if event.kind == "run.started":
        return _line(event, "agent", "", "")
    if event.kind == "agent.handoff":
        taker = mark_for(event_rows.agent(event_rows.line(read.body.get("to_agent"))))
        return _line(event, "agent", "", "")._replace(mark=taker)
    if event.kind == "tool_step":
        return _line(event, "failure", "s-failed", f"{read.payload.name or 'tool call'} failed")
    if lane_words.is_withdrawal(read):
        return _line(event, "approval", "gate", _words_in_lane(read))
    if event.kind == "record.gap" or event.kind in (*BAD, "policy.refused"):
        return _line(event, "failure", "break" if event.kind == "record.gap" else "s-failed", _words_in_lane(read))
    if event.kind.startswith("approval."):
        glyph = "s-waiting" if event.kind == "approval.requested" else "gate"
        return _line(event, "approval", glyph, _words_in_lane(read))
    if event.kind in ANNOTATIONS:
        return _line(event, "control", "note", read.payload.words)
    return _line(event, "control", "s-person", _words_in_lane(read))


def _words_in_lane(read: event_rows.ParsedEvent) -> str:
    """Return the text of an event as a lane's card has it: its verb, and the field it shows."""
    event_type = registry.find(read.event.kind)
    if event_type is None or event_type.lane is None:
        return read.event.kind
    lane = event_type.lane
    return lane_words.sentence(read, lane)


def _line(event: Stored, sort: Sort, glyph: str, words: str) -> OutlineRow:
    sender, _ = lane_cards.ends(event, None)
    return OutlineRow(event.seq, sort, glyph, sender, richtext.one_line(words, LETTERS))
