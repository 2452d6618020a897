"""Turn events that may raise alarms, as the log noted them while storing, into alarms. Each note is used once, by the
rules as they are then: who changes a rule uses up the notes that are there."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from conversations.alerts import alarms
from conversations.alerts.kinds import Case
from conversations.core.plain_text import counted
from conversations.core.secret_masking import mask
from conversations.core.write_transaction import lock_actions, write_transaction
from conversations.events import registry
from conversations.events.log.reads import column_at
from conversations.events.payload import clean_text
from conversations.models import AlarmCause, AlertRule, Conversation, Run

AT_A_TIME = 100  # notes: whoever writes meanwhile waits for so many
LEGIBLE = 200  # characters of an error that an alarm repeats


class NotedEvent(NamedTuple):
    """A case, with what decides whether a rule is about it."""

    kind: str
    case: Case


def raise_alarms(now: int) -> bool:
    """Turn noted events into alarms and delete the notes; return whether there may be more. One transaction, none
    without notes."""
    if not AlarmCause.objects.exists():
        return False
    with write_transaction():
        lock_actions()
        return _use_notes(now)


def raise_all_alarms(now: int) -> None:
    """Use up all notes, before a rule is changed in the caller's action: by order, since the clocks of events and rules
    may differ or be set."""
    while _use_notes(now):
        pass


def _use_notes(now: int) -> bool:
    notes = list(AlarmCause.objects.order_by("id")[:AT_A_TIME])
    events = list(_events(notes))
    for rule in AlertRule.objects.active() if events else ():
        cases = [event.case for event in events if event.kind == rule.kind and rule.agent in ("", event.case.agent)]
        if cases:
            alarms.add(rule, alarms.grouped(rule, cases), now)
    AlarmCause.objects.filter(id__in=[note.id for note in notes]).delete()
    return len(notes) == AT_A_TIME


def _events(notes: Sequence[AlarmCause]) -> Iterator[NotedEvent]:
    """Yield the noted events, without the demo's and without runs inside others."""
    ids = {note.conversation_id for note in notes}
    keys = dict(Conversation.objects.visible().filter(id__in=ids, is_demo=False).values_list("id", "key"))
    agents = dict(
        Run.objects.filter(id__in={note.run for note in notes if note.run}, kind="agent", parent_call=None)
        .values_list("id", "agent")
    )  # fmt: skip
    bodies = column_at([(note.conversation_id, note.seq) for note in notes if note.conversation_id in keys], "body")
    for note in notes:
        if note.conversation_id not in keys or (note.kind == "run_failed" and note.run not in agents):
            continue
        body = bodies.get((note.conversation_id, note.seq))
        if body is not None:
            fields = json.loads(body)
            cause, detail = _failure(fields) if note.kind == "run_failed" else _gap(fields)
            key, agent = keys[note.conversation_id], agents.get(note.run or "", "")
            yield NotedEvent(note.kind, Case(cause, key, note.seq, agent, detail, ""))


def _failure(fields: dict[str, object]) -> tuple[str, str]:
    reason, name = _text(fields, "reason"), _text(fields, "event")
    error = _text(fields, "error") or reason
    known = registry.find(name)
    cause = known.alarm_cause if known is not None else ""
    return cause or f"failed ({reason})"[:LEGIBLE], mask(error)[:LEGIBLE]


def _gap(fields: dict[str, object]) -> tuple[str, str]:
    lost = fields.get("lost")
    count = f"{counted(lost, 'event')} lost" if isinstance(lost, int) else "events lost"
    return _text(fields, "reason")[:LEGIBLE], f"{count}: {_text(fields, 'why')}"[:LEGIBLE]


def _text(fields: dict[str, object], name: str) -> str:
    """Return a field as a text for a column; empty for another type."""
    return clean_text(str(fields.get(name) or ""))
