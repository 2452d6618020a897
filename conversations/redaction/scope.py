"""What a person asks to have redacted: events, a tool call or a field of it, everything about a person, or by a
retention rule what grows old. Used by the page, the API and the command, which show what would go before they do it."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import Q

from conversations.access.action_context import find_conversation
from conversations.access.permissions import Who
from conversations.core import write_ahead_log
from conversations.core.bounded_groups import blocks
from conversations.core.errors import Conflict, Invalid
from conversations.core.plain_text import counted
from conversations.events.log import hash_chain
from conversations.models import Approval, AuditEntry, Conversation, Event, RedisPosition, Run, SessionItem, ToolCall
from conversations.redaction import (
    alert_details,
    audit_entries,
    erase_id,
    id_columns,
    redact,
    retention_rules,
    selection,
)
from conversations.redaction.call_field import SHORTEST
from conversations.redaction.id_forms import ErasedId
from conversations.redaction.redact import Redacted
from conversations.redaction.retention_rules import RetentionTerms
from conversations.redaction.selection import MAX_EVENTS, Part


class RedactionScope(NamedTuple):
    """Events of a conversation; or its id (`is_id`); or a tool call, or one `field` of it; or entries of the audit log;
    or a person by name, and words that describe them: in conversations and in the audit log; or what a retention rule
    takes after so many `days`, of one conversation, event type or team, or of any."""

    conversation: str = ""
    events: Sequence[int] = ()
    call: str = ""
    field: str = ""
    person: str = ""
    words: Sequence[str] = ()
    entries: Sequence[int] = ()
    is_id: bool = False
    days: int = 0
    kind: str = ""
    team: str = ""

    @classmethod
    def from_json(cls, text: str) -> "RedactionScope":
        """Read what `as_json` wrote."""
        return cls(**json.loads(text))

    def as_json(self) -> str:
        """Write it."""
        return json.dumps(self._asdict())

    @property
    def terms(self) -> RetentionTerms | None:
        """Return the terms of the retention rule, if it is one."""
        return RetentionTerms(self.days, self.kind, self.team, self.conversation) if self.days else None

    @property
    def is_about_person(self) -> bool:
        """Return whether it is about a person, in whatever conversations."""
        return bool(self.person or self.words)

    def require_one(self) -> None:
        """Raise Invalid, with the field, if it names two kinds of things: each is redacted on its own."""
        kinds = {
            "conversation": "events of a conversation" if self.conversation and not self.is_id else "",
            "events": "events of a conversation" if self.events else "",
            "id": "the ID of a conversation" if self.is_id else "",
            "call": "a tool call" if self.call else "",
            "entries": "entries of the audit log" if self.entries else "",
            "person": "a person" if self.person else "",
            "words": "words" if self.words else "",
        }
        named = {field: kind for field, kind in kinds.items() if kind}
        distinct = list(dict.fromkeys(named.values()))
        if len(distinct) > 1 and distinct != ["a person", "words"]:
            field = next(field for field in reversed(named) if field != "id")
            raise Invalid(f"choose one: {', '.join(distinct[:-1])} or {distinct[-1]}", field=field)
        if self.field and not self.call:
            raise Invalid("must be a field of a tool call", field="field")

    @property
    def target(self) -> str:
        """Return how the audit log calls it: of a person a digest, since the log keeps what it says."""
        if self.is_about_person:
            return f"person:{hashlib.sha256('/'.join((self.person, *self.words)).encode()).hexdigest()[:16]}"
        if self.entries:
            return audit_entries.TARGET
        if self.terms and not self.conversation:
            return retention_rules.TARGET
        return f"tool_call:{self.call}" if self.call else f"conversation:{self.conversation}"

    @property
    def name(self) -> str:
        """Return what it is, in words."""
        if self.terms:
            return retention_rules.name_of(self.terms)
        if self.is_about_person:
            return f"everything about {', '.join(filter(None, (self.person, *self.words)))}"
        if self.is_id:
            return f"the id of {self.conversation}"
        if self.call:
            return f"{self.field} of tool call {self.call}" if self.field else f"tool call {self.call}"
        if self.entries:
            return f"{len(self.entries):,} {'entry' if len(self.entries) == 1 else 'entries'} of the audit log"
        return f"{counted(len(self.events), 'event')} of {self.conversation}"


class RedactedPlace(NamedTuple):
    """What goes of one conversation: events by type, and what else says the same, by what it is."""

    conversation: str
    seqs: Sequence[int]
    kinds: dict[str, int]
    elsewhere: dict[str, int]
    is_fork: bool
    blocked: str  # why nothing goes there now; empty: nothing is in the way


class RedactionOutcome(NamedTuple):
    """What was redacted, and where it was refused with why."""

    redacted: Sequence[Redacted]
    refused: Sequence[tuple[str, str]]
    entries: int = 0  # of the audit log that were erased


def preview(scope: RedactionScope) -> list[RedactedPlace]:
    """Return what would go and where; change nothing. Raises Invalid, NotFound."""
    scope.require_one()
    if scope.terms:
        return []
    if scope.is_id:
        return _places_of_id(find_conversation(scope.conversation))
    merged: dict[int, tuple[Conversation, dict[int, str]]] = {}
    for parts in _parts(scope):
        for part in parts:
            merged.setdefault(part.conversation.pk, (part.conversation, {}))[1].update(part.events)
    places = (Part(row, sorted(events.items())) for row, events in merged.values())
    return [_place(part) for part in sorted(places, key=lambda part: part.conversation.pk)]


def preview_ids(scope: RedactionScope) -> list[str]:
    """Return the ids of conversations that contain a person's name or one of the words: each is erased by itself."""
    words = [word for word in (scope.person, *scope.words) if len(word) >= SHORTEST]
    return erase_id.containing(words) if words else []


def preview_entries(scope: RedactionScope) -> list[int]:
    """Return the entries of the audit log that would be erased. Raises Invalid."""
    if scope.is_about_person:
        return audit_entries.naming(scope.person, scope.words)
    return list(audit_entries.erasable().filter(seq__in=scope.entries).values_list("seq", flat=True))


def carry_out(by: Who, scope: RedactionScope, reason: str, **facts: Any) -> RedactionOutcome:
    """Redact it. Of a person, where one conversation is refused (held, or a run is at work), the others are done.
    Raises as `redact` does, and Invalid; `facts` are for the audit entries."""
    scope.require_one()
    if scope.terms:
        retention_rules.set_rule_once(by, scope.terms, reason)
        return RedactionOutcome((), ())
    if scope.is_id:
        return RedactionOutcome(erase_id.erase_id(by, scope.conversation, reason, **facts), ())
    if scope.call:
        return RedactionOutcome(redact.redact_call(by, scope.call, scope.field, reason, **facts), ())
    if scope.entries:
        return RedactionOutcome((), (), audit_entries.erase(by, scope.entries, reason))
    if not scope.is_about_person:
        return RedactionOutcome(redact.redact(by, scope.conversation, scope.events, reason, **facts), ())
    return _carry_out_about_person(by, scope, reason, **facts)


def _carry_out_about_person(by: Who, scope: RedactionScope, reason: str, **facts: Any) -> RedactionOutcome:
    done: list[Redacted] = []
    refused = []
    for row, seqs in selection.events_of_person(scope.person, scope.words).items():
        for page in blocks(seqs, MAX_EVENTS):
            try:
                done += redact.redact(by, row.key, page, reason, about=scope.target, **facts)
            except Conflict as error:
                if error.code != "redacted":  # as a copy, or beside what said the same
                    refused.append((row.key, error.sentence))
            write_ahead_log.shorten()
    entries = audit_entries.naming(scope.person, scope.words)
    free = audit_entries.without_held(entries)
    if len(free) < len(entries):
        refused.append(("audit log", f"{len(entries) - len(free):,} entries are kept by a legal hold."))
    erased = audit_entries.erase(by, free, reason) if free else 0
    return RedactionOutcome(done, refused, erased)


def _parts(scope: RedactionScope) -> Iterator[list[Part]]:
    if scope.is_about_person:
        for row, seqs in selection.events_of_person(scope.person, scope.words).items():
            for page in blocks(seqs, MAX_EVENTS):
                yield selection.parts_of(row.key, page)
    elif scope.entries:
        return
    elif scope.call:
        yield selection.parts_of_call(scope.call, scope.field)
    else:
        yield selection.parts_of(scope.conversation, scope.events)


def _place(part: Part) -> RedactedPlace:
    row, seqs = part.conversation, part.seqs
    calls = ToolCall.objects.filter(Q(called_seq__in=seqs) | Q(finished_seq__in=seqs), conversation=row)
    approvals = Approval.objects.filter(Q(asked_seq__in=seqs) | Q(decided_seq__in=seqs), conversation=row)
    elsewhere = {
        "entries of the search index": sum(seq <= row.indexed_seq and kind != "token" for seq, kind in part.events),
        "tool calls": calls.count(),
        "approval requests": approvals.count(),
        "items that agents remember": SessionItem.objects.filter(conversation=row.key).count(),
        "saved states of runs": Run.objects.filter(conversation=row, state__isnull=False).count(),
        "alarms": len(alert_details.alarms_about(row, set(seqs))),
        "exports made before, which keep the words": AuditEntry.objects.filter(
            verb="export", target=f"conversation:{row.key}", outcome="done"
        ).count(),
    }
    return _placed(part, elsewhere, redact.why_blocked(row))


def _places_of_id(row: Conversation) -> list[RedactedPlace]:
    erased = ErasedId(row.key, hash_chain.erased_key(row.key_digest))
    entries = audit_entries.without_id(erased)
    elsewhere = {
        "other rows: alarms, alerts, rules, agents' memory": id_columns.count(erased),
        "entries of the audit log": sum(bool(entry.digest) for entry in entries),
        "entries of the audit log in an older format, which keep it": sum(not entry.digest for entry in entries),
        "events that have it in their own id or run, which keep it": Event.objects.filter(
            erased.held_by("event_id", "run"), conversation=row
        ).count(),
        "positions in Redis streams, which keep it": RedisPosition.objects.filter(erased.held_by("stream")).count(),
        "exports made before, which keep it": AuditEntry.objects.filter(
            verb="export", target=f"conversation:{row.key}", outcome="done"
        ).count(),
    }
    places = []
    for part in erase_id.parts_naming(row):
        is_main = part.conversation.pk == row.pk
        blocked = erase_id.why_not(row) if is_main else ""
        places.append(_placed(part, elsewhere if is_main else {}, blocked or redact.why_blocked(part.conversation)))
    return places


def _placed(part: Part, elsewhere: dict[str, int], blocked: str) -> RedactedPlace:
    row, kinds = part.conversation, Counter(kind for _, kind in part.events)
    counted = {what: count for what, count in elsewhere.items() if count}
    return RedactedPlace(row.key, part.seqs, dict(sorted(kinds.items())), counted, row.parent_id is not None, blocked)
