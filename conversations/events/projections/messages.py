"""Messages, outputs and openings → row deltas (law I): who takes part, what was said last, the title."""

from __future__ import annotations

from conversations.core import principals
from conversations.core.ids import text_digest
from conversations.events.payload import ParsedPayload
from conversations.events.projections import captions, forks, questions, token_access, turns
from conversations.events.projections.participants import add_participants
from conversations.events.projections.row_changes import ConversationHead, EventFacts, RowChanges

ECHOING = ("message", "user_message")
ECHO_WITHIN = 64  # events after which the same words were said again
INSIDE = '"parent_call":'  # in a body of ours; within a text its quotes would be escaped


def message(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Count a message, unless it repeats an output; note who takes part."""
    payload = event.payload
    if not repeats_output(payload, head.was_repeatable):
        head.messages += 1
    _take_part(changes, head, event)
    questions.ask_or_answer(changes, head, event)
    captions.speak(head, payload, event.principal)


def _take_part(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Note the sender and the recipient, once for all events of a batch that say the same of them."""
    payload = event.payload
    named = payload.sender, payload.agent, payload.recipient
    meeting = (head.id, *named, event.principal, event.run is None, head.outside_seq)
    if meeting not in changes.met:
        changes.met.add(meeting)
        add_participants(changes, head, event, lets_in=token_access.may_let_in(changes, head, event))


def repeats_output(payload: ParsedPayload, repeatable: str) -> bool:
    """Return whether an envelope repeats an output: it names it, or says its words right after it (§3.1)."""
    if payload.metadata is not None and (payload.metadata.output_id or payload.metadata.repeats_nothing):
        return bool(payload.metadata.output_id)
    return bool(repeatable) and repeatable in (
        mark_output(payload.speaker, payload.words),
        mark_output("", payload.words),
    )


def repeats_message(payload: ParsedPayload, message: ParsedPayload) -> bool:
    """Return whether what a stream says that a person typed is the message right before it: a gateway of magent2 sends
    each message as both."""
    return bool(payload.words) and (payload.speaker, payload.words) == (message.speaker, message.words)


class SpokenMessages:
    """What each speaker said last: beside magent2 what a person typed comes as a message and, perhaps after the first
    steps of the agent, once more as an event of the stream."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, str]] = {}  # by speaker: the seq of a message, and what identifies its words

    def is_echo(self, seq: int, kind: str, payload: ParsedPayload) -> bool:
        """Take in the next event; return whether it tells again what its speaker said last, which it does once."""
        if kind not in ECHOING:
            return False
        at, earlier = self._last.pop(payload.speaker, (0, ""))
        mark = mark_output(payload.speaker, payload.words)
        if kind == "user_message":
            return bool(payload.words) and earlier == mark and seq - at <= ECHO_WITHIN
        self._last[payload.speaker] = seq, mark
        if len(self._last) > ECHO_WITHIN:
            del self._last[next(iter(self._last))]  # whoever was silent for longest
        return False


def mark_output(speaker: str, text: str) -> str:
    """Return what identifies an output for an envelope that may repeat it; an unknown speaker matches any."""
    return text_digest(f"{speaker}\0{text}")


def output(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Count an agent's output, note what may repeat it, and what an external agent spent for it."""
    payload = event.payload
    head.messages += 1
    head.repeatable = mark_output(payload.speaker, payload.words)
    if event.run is None:
        head.preview_after = head.head_seq
        if head.head_seq > head.copied_seq:  # what a fork's copy spent was spent there
            turns.observed(changes, head, event)
    _take_part(changes, head, event)
    if event.run is None or INSIDE not in event.body:
        captions.speak(head, payload, event.principal)


def user_message(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Note what a person typed."""
    _take_part(changes, head, event)
    questions.ask_or_answer(changes, head, event)
    captions.speak(head, event.payload, event.principal)


def control(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Note who takes part; nobody is let in."""
    add_participants(changes, head, event, lets_in=False)  # participants receive control actions


def opened(changes: RowChanges, head: ConversationHead, event: EventFacts) -> None:
    """Note the title; of people also the handler and the parent that a conversation is opened with."""
    head.title = (event.payload.title or "")[:200] or head.title
    if principals.is_people(event.principal):
        head.handler = (event.payload.handler or "")[:200] or head.handler
        head.is_demo = head.is_demo or bool(event.payload.demo)
        forks.opened(changes, head, event)
