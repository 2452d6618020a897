"""Erase a conversation's id, which may be somebody's address: from then on it is `erased-` and the beginning of its
digest, wherever the record had it. A chained `conversation.id_erased` says so: by it `verify` accepts the missing salt.

Events keep what they say: the id alone is replaced in them. In the conversation, its forks and what was moved into it
that is done in words, too; elsewhere only where a value is the id, such as whose fork it is.
"""

import json
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import Q

from conversations.access.action_context import audited_action, event_author, find_conversation
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core.errors import Conflict, Invalid
from conversations.core.principals import SYSTEM, Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log import bounded_reads, hash_chain
from conversations.events.log.refold import Gone, Refold
from conversations.events.projections.tool_calls import derived_id
from conversations.events.types.redaction import FIELD_MARK, ID_ERASED
from conversations.models import Conversation, Event, ToolCall
from conversations.redaction import audit_entries, id_columns, legal_holds, redact, replaced_bodies
from conversations.redaction.call_field import spellings_of_word
from conversations.redaction.id_forms import ErasedId
from conversations.redaction.redact import ID_FIELD, Redacted
from conversations.redaction.replaced_bodies import NamedDigest
from conversations.redaction.selection import MAX_EVENTS, Part
from conversations.search import index_writer
from conversations.telemetry.late_names import MOVED

MAX_NAMING = 20_000  # events at once
MAX_CALLS = 10_000  # that one event names: about 0.5 MB
MARK = "id:"  # begins the mark of the redaction that stands for all of it


def erase_id(by: Who, key: str, reason: str, **facts: Any) -> list[Redacted]:
    """Erase it; return the events that had it. Raises NotFound, Invalid, and Conflict where it cannot be erased, a hold
    is in force or a run is at work. `facts` are for the audit entry."""
    reason = legal_holds.checked_reason(reason)
    with audited_action(by, "erase_id", f"conversation:{key}", right="redact") as principal:
        row = find_conversation(key)
        if why := why_not(row):
            raise Conflict(why, code="redacted" if row.key_digest else "old_format")
        if key in reason:
            raise Invalid("must not contain the id", field="reason")
        parts = parts_naming(row)
        redact.lock_for_redaction(parts)
        done = _erase(row, parts, principal, reason, f"{MARK}{secrets.token_hex(16)}")
        events = {redacted.conversation: len(redacted.seqs) for redacted in done}
        chain.add_entry(
            principal, "erase_id", f"conversation:{row.key}", reason=reason, correlation={**facts, "events": events}
        )
    return done


def erase_again(row: Conversation, reason: str, mark: str) -> int:
    """Erase what the journal lists, in a record that is older than it; inside the transaction. Return how many events
    had it."""
    return sum(len(redacted.seqs) for redacted in _erase(row, parts_naming(row), SYSTEM, reason, mark))


def why_not(row: Conversation) -> str:
    """Return why its id cannot be erased; empty where it can."""
    if not row.key_digest:
        return "This conversation is of an older format: its id is part of its hash chain and cannot be erased."
    return "The id of this conversation is already erased." if row.key_salt is None else ""


def containing(words: Sequence[str]) -> list[str]:
    """Return the ids that contain one of these texts, in any case, oldest first."""
    condition = Q()
    for form in {form for word in words for form in spellings_of_word(word)}:
        condition |= Q(key__icontains=form)
    return list(
        Conversation.objects.visible().filter(condition).order_by("pk").values_list("key", flat=True)[:MAX_EVENTS]
    )


def newest(after: int) -> tuple[int, int]:
    """Return the newest redaction, and when the newest one of an id after that number was made (µs UTC; 0 if there is
    none)."""
    if (last := redact.newest()) <= after:
        return after, 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT MAX(at) FROM conversations_redaction WHERE id>%s AND field=%s", [after, redact.ID_FIELD])
        return last, cursor.fetchone()[0] or 0


def is_erased(key: str) -> bool:
    """Return whether this is the new id of a conversation whose own was erased."""
    rows = Conversation.objects.visible().filter(key=key, key_salt=None)
    return rows.exclude(key_digest="").exists() and key.startswith(hash_chain.erased_key(""))


def parts_naming(row: Conversation) -> list[Part]:
    """Return the events that have the id, by conversation; the conversation itself is always among them. Raises Invalid
    if they are too many."""
    erased = ErasedId(row.key, hash_chain.erased_key(row.key_digest))
    rows = Event.objects.filter(erased.held_by("body"), conversation__in=Conversation.objects.published())
    if rows[: MAX_NAMING + 1].count() > MAX_NAMING:
        raise Invalid(f"more than {MAX_NAMING:,} events have this id", field="conversation")
    own = _own(row, erased)
    naming: dict[int, list[tuple[int, str]]] = {row.pk: []}
    columns = rows.order_by("conversation_id", "seq").values_list("conversation_id", "seq", "kind", "body")
    for pk, seq, kind, body in columns.iterator(chunk_size=bounded_reads.FETCHED):
        if erased.in_body(body, words=pk in own) != body:
            naming.setdefault(pk, []).append((seq, kind))
    of = Conversation.objects.in_bulk(naming)
    return [Part(of[pk], naming[pk]) for pk in sorted(of)]


def _own(row: Conversation, erased: ErasedId) -> set[int]:
    """Return the conversations in which the id is replaced in words, too: itself, its forks with forks of these, and
    those that were moved into it."""
    own, last_forks = {row.pk}, {row.pk}
    while last_forks:
        last_forks = set(Conversation.objects.filter(parent__in=last_forks).values_list("pk", flat=True)) - own
        own |= last_forks
    moved = Event.objects.filter(erased.held_by("body"), kind=MOVED, conversation__in=Conversation.objects.published())
    bodies = moved.values_list("conversation_id", "body").iterator(chunk_size=bounded_reads.FETCHED)
    return own | {pk for pk, body in bodies if erased.in_body(body, words=False) != body}


def _erase(row: Conversation, parts: Sequence[Part], by: Principal, reason: str, mark: str) -> list[Redacted]:
    erased = ErasedId(row.key, hash_chain.erased_key(row.key_digest))
    if Conversation.objects.filter(key=erased.new).exists():
        raise Conflict(f"another conversation has the id {erased.new}")
    with write_transaction():
        own, locked = _own(row, erased), {part.conversation.pk for part in parts}
        parts = [part for part in parts_naming(row) if part.conversation.pk in locked]  # as they are under the locks
        Conversation.objects.filter(pk=row.pk).update(key=erased.new, key_salt=None)
        row.key, row.key_salt = erased.new, None
        writer, doer = event_author(by)
        body = {"event": ID_ERASED, "new_id": erased.new, "reason": reason, **doer}
        calls = _observed_calls(row, erased.old)
        for at in range(0, max(len(calls), 1), MAX_CALLS):
            page = {"id": f"{mark}:{at}" if at else mark, "calls": dict(calls[at : at + MAX_CALLS])}
            log.append([log.from_internal(row.key, body | page, writer)])
        id_columns.replace(row, own, erased)
        audit_entries.replace_id(erased, by, reason)
        done = [
            _replace(part, by, reason, partial(erased.in_body, words=part.conversation.pk in own)) for part in parts
        ]
        index_writer.caption_again([part.conversation.pk for part in parts])
        redact.note(mark, by, reason, conversation=row, seqs="[]", field=ID_FIELD)
        transaction.on_commit(lambda: redact.forget_drawn(erased.old, range(1, row.head_seq + 1)))
    return [Redacted(row.key if part.pk == row.pk else part.key, seqs, mark) for part, seqs in done]


def _observed_calls(row: Conversation, key: str) -> list[tuple[str, str]]:
    """Return `(seq, id)` of the calls whose ids were derived from this id of the conversation."""
    calls = ToolCall.objects.filter(conversation=row).order_by("called_seq")
    rows = calls.values_list("called_seq", "id", "started_at").iterator(chunk_size=bounded_reads.FETCHED)
    return [(str(seq), id_) for seq, id_, at in rows if id_ == derived_id(at, key, seq)]


def _replace(
    part: Part, by: Principal, reason: str, new_body: Callable[[str], str]
) -> tuple[Conversation, Sequence[int]]:
    """Replace the bodies of one conversation's events, by pages that an `event.redacted` names each."""
    row = part.conversation
    key = Conversation.objects.values_list("key", flat=True).get(pk=row.pk)
    for at in range(0, len(part.seqs), MAX_EVENTS):
        seqs = part.seqs[at : at + MAX_EVENTS]
        mark = f"{FIELD_MARK}{secrets.token_hex(16)}"
        index_writer.forget(row.pk, seqs)
        digests, spoken = _put(row, seqs, mark, new_body)
        if spoken:
            index_writer.index_again(row.pk, spoken)
        redact.name_redacted(key, mark, digests, by, reason)
        redact.note(mark, by, reason, conversation=row, seqs=json.dumps(seqs), field=ID_FIELD)
    if part.seqs:
        with suppress(Gone):
            Refold(row.pk, key).run()
        transaction.on_commit(lambda: redact.forget_drawn(key, part.seqs))
    return row, part.seqs


def _put(
    row: Conversation, seqs: Sequence[int], mark: str, new_body: Callable[[str], str]
) -> tuple[list[NamedDigest], list[int]]:
    """Store the new bodies without a salt; return the digests that name them, and those that still say something."""
    digests: list[NamedDigest] = []
    spoken: list[int] = []
    with connection.cursor() as cursor:
        for seq, erased_by, body in replaced_bodies.read(cursor, row, seqs):
            by = erased_by or mark  # a tombstone stays what it is
            digests.append(replaced_bodies.replace(cursor, row, seq, new_body(body), by))
            spoken += [seq] if by.startswith(FIELD_MARK) else []
    return digests, spoken
