"""What a person asks to have redacted: events, a tool call or a field of it, or everything about a person. Used by the
page, the API and the command, which show what would go before they do it."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.db.models import Q

from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid
from conversations.models import Alarm, Approval, AuditEntry, Conversation, Run, SessionItem, ToolCall
from conversations.redaction import audit_entries, legal_holds, redact, selection
from conversations.redaction.redact import Redacted
from conversations.redaction.selection import MAX_EVENTS, Part


class RedactionScope(NamedTuple):
    """Events of a conversation; or a tool call, or one `field` of it; or entries of the audit log; or a person by name,
    and words that describe them: in conversations and in the audit log."""

    conversation: str = ""
    events: Sequence[int] = ()
    call: str = ""
    field: str = ""
    person: str = ""
    words: Sequence[str] = ()
    entries: Sequence[int] = ()

    @classmethod
    def from_json(cls, text: str) -> "RedactionScope":
        """Read what `as_json` wrote."""
        return cls(**json.loads(text))

    def as_json(self) -> str:
        """Write it."""
        return json.dumps(self._asdict())

    @property
    def is_about_person(self) -> bool:
        """Return whether it is about a person, in whatever conversations."""
        return bool(self.person or self.words)

    @property
    def target(self) -> str:
        """Return how the audit log calls it: of a person a digest, since the log keeps what it says."""
        if self.is_about_person:
            return f"person:{hashlib.sha256('/'.join((self.person, *self.words)).encode()).hexdigest()[:16]}"
        if self.entries:
            return audit_entries.TARGET
        return f"tool_call:{self.call}" if self.call else f"conversation:{self.conversation}"

    @property
    def name(self) -> str:
        """Return what it is, in words."""
        if self.is_about_person:
            return f"everything about {', '.join(filter(None, (self.person, *self.words)))}"
        if self.call:
            return f"{self.field} of tool call {self.call}" if self.field else f"tool call {self.call}"
        if self.entries:
            return f"{len(self.entries):,} {'entry' if len(self.entries) == 1 else 'entries'} of the audit log"
        return f"{len(self.events):,} {'event' if len(self.events) == 1 else 'events'} of {self.conversation}"


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
    merged: dict[int, tuple[Conversation, dict[int, str]]] = {}
    for parts in _parts(scope):
        for part in parts:
            merged.setdefault(part.conversation.pk, (part.conversation, {}))[1].update(part.events)
    places = (Part(row, sorted(events.items())) for row, events in merged.values())
    return [_place(part) for part in sorted(places, key=lambda part: part.conversation.pk)]


def preview_entries(scope: RedactionScope) -> list[int]:
    """Return the entries of the audit log that would be erased. Raises Invalid."""
    if scope.is_about_person:
        return audit_entries.naming(scope.person, scope.words)
    return list(audit_entries.erasable().filter(seq__in=scope.entries).values_list("seq", flat=True))


def carry_out(by: Who, scope: RedactionScope, reason: str, **facts: Any) -> RedactionOutcome:
    """Redact it. Of a person, where one conversation is refused (held, or a run is at work), the others are done.
    Raises as `redact` does; `facts` are for the audit entries."""
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
        for page in _pages(seqs):
            try:
                done += redact.redact(by, row.key, page, reason, about=scope.target, **facts)
            except Conflict as error:
                if error.code != "redacted":  # as a copy, or beside what said the same
                    refused.append((row.key, error.sentence))
    entries = audit_entries.naming(scope.person, scope.words)
    free = audit_entries.without_held(entries)
    if len(free) < len(entries):
        refused.append(("audit log", f"{len(entries) - len(free):,} entries are kept by a legal hold."))
    erased = audit_entries.erase(by, free, reason) if free else 0
    return RedactionOutcome(done, refused, erased)


def _parts(scope: RedactionScope) -> Iterator[list[Part]]:
    if scope.is_about_person:
        for row, seqs in selection.events_of_person(scope.person, scope.words).items():
            for page in _pages(seqs):
                yield selection.parts_of(row.key, page)
    elif scope.entries:
        return
    elif scope.call:
        yield selection.parts_of_call(scope.call, scope.field)
    elif scope.field:
        raise Invalid("must be a field of a tool call", field="field")
    else:
        yield selection.parts_of(scope.conversation, scope.events)


def _pages(seqs: Sequence[int]) -> Iterator[Sequence[int]]:
    for at in range(0, len(seqs), MAX_EVENTS):
        yield seqs[at : at + MAX_EVENTS]


def _place(part: Part) -> RedactedPlace:
    row, seqs = part.conversation, part.seqs
    kinds: dict[str, int] = {}
    for _, kind in part.events:
        kinds[kind] = kinds.get(kind, 0) + 1
    calls = ToolCall.objects.filter(Q(called_seq__in=seqs) | Q(finished_seq__in=seqs), conversation=row)
    approvals = Approval.objects.filter(Q(asked_seq__in=seqs) | Q(decided_seq__in=seqs), conversation=row)
    elsewhere = {
        "entries of the search index": sum(seq <= row.indexed_seq and kind != "token" for seq, kind in part.events),
        "tool calls": calls.count(),
        "approval requests": approvals.count(),
        "items that agents remember": SessionItem.objects.filter(conversation=row.key).count(),
        "saved states of runs": Run.objects.filter(conversation=row, state__isnull=False).count(),
        "alarms": Alarm.objects.filter(conversation=row.key).exclude(detail="").count(),
        "exports made before, which keep the words": AuditEntry.objects.filter(
            verb="export", target=f"conversation:{row.key}", outcome="done"
        ).count(),
    }
    counted = {what: count for what, count in elsewhere.items() if count}
    return RedactedPlace(row.key, seqs, dict(sorted(kinds.items())), counted, row.parent_id is not None, _blocked(row))


def _blocked(row: Conversation) -> str:
    try:
        legal_holds.require_none([row.pk])
        redact.require_idle([Part(row, ())])
    except Conflict as error:
        return error.sentence
    return ""
