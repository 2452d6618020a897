"""Fold one conversation again and correct the rows that differ. Called by `rebuild`, `redact` and `erase_id`,
and, to compare alone, by `refold_check` and `past_state`.

No table is emptied: readers and writers continue, and never see a partial result. The fold runs ahead without a lock,
page by page. Rows that can no longer change (an ended call, a turn) are compared as they are folded. All others are
correct only at the head: they are compared without a lock if nothing is appended in the meantime, or else under the
conversation's lock, in pieces of `LOCKED` rows, after the new events are folded too. Later events are folded by
`append` as usual.

In memory it holds the open calls, runs, approvals, responses and participants of one conversation, and how often each
call id was used.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from operator import attrgetter
from typing import Any

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.core.principals import is_people
from conversations.core.write_transaction import write_transaction
from conversations.events import payload, projections
from conversations.events.log import bounded_reads, folded_rows, sql_runs
from conversations.events.log.folded_rows import OF_ONE_EVENT, TABLES, Key
from conversations.events.projections import ConversationHead, EventFacts, RowChanges, forks
from conversations.events.types.redaction import ID_ERASED, kept_calls_of
from conversations.models import Event

FORKED = "conversation.forked"
PAGE = 2_000  # events of one read
LOCKED = 200  # events folded, and rows compared, under one lock
LOOKS = 3  # tries to compare without a lock
PUT_OFF = 10  # times in a row that the lock is given back to fold what was appended meanwhile; then it is kept
COLUMNS = (
    "last_at", "last_sender", "last_line", "messages", "tool_calls", "errors", "repeatable", "preview_after", "title",
    "handler", "is_demo", "state", "owner", "paused_seq", "owned_seq", "last_by", "opened_by", "outside_seq",
    "activity",
)  # fmt: skip
values_of = attrgetter(*COLUMNS)
_HEAD = f"SELECT head_seq,{','.join(COLUMNS)} FROM conversations_conversation WHERE id=%s AND NOT is_staged"
_FORK = """SELECT (SELECT id FROM conversations_conversation WHERE key=%s),parent_id,forked_at,copied_seq
FROM conversations_conversation WHERE id=%s"""
_CORRECT = f"UPDATE conversations_conversation SET {','.join(f'{column}=%s' for column in COLUMNS)} WHERE id=%s"


class Gone(Exception):
    """The conversation was removed in the meantime."""


class Refold:
    """A conversation's fold so far, and the keys of the rows still to be compared, by table."""

    def __init__(self, pk: int, key: str) -> None:
        self.head, self._changes = begin(pk, key)
        self.corrected = 0  # rows
        self._put_off = 0  # times in a row that more was appended than is folded under the lock
        self._remaining: dict[str, dict[Key, None]] = {table: {} for table in TABLES}

    def run(self) -> None:
        """Fold up to the head and correct rows that differ. Raises `Gone`."""
        with connection.cursor() as cursor:
            self._fold_on(cursor)
            self._note_rest(cursor)
            if not any(self._is_right(cursor) for _ in range(LOOKS)):
                while not self._settle(cursor):
                    pass

    def _fold_on(self, cursor: CursorWrapper) -> None:
        """Fold the events that exist now, without a lock; continuous appends do not keep this running."""
        upto = self._stored(cursor)[0]
        while self._fold(cursor, upto, PAGE):
            pass

    def _fold(self, cursor: CursorWrapper, upto: int, most: int) -> bool:
        """Fold the next page and compare what is final in it; return whether there was one."""
        after = self.head.head_seq
        source = "FROM conversations_event WHERE conversation_id=%s AND seq>%s AND seq<=%s"
        names = "seq,kind,at,principal,run,body"
        page = bounded_reads.rows(cursor, names, source, [self.head.id, after, upto], order="seq", limit=most)
        for seq, kind, at, principal, run, body in page:
            self.head.head_seq = seq
            event = EventFacts(payload.parse(body.encode()), at, principal, run, body)
            projections.fold(self._changes, self.head, kind, event)
        if page:
            self._compare_final(cursor, after)
        return bool(page)

    def _compare_final(self, cursor: CursorWrapper, after: int) -> None:
        """Compare calls that have ended, and rows of single events, after a seq; discard them and note what remains."""
        changes, head = self._changes, self.head
        touched = changes.new_calls | changes.changed_calls  # made in this page, or before it
        ended: dict[Key, Any] = {row.id: row for row in touched.values() if row.finished_seq is not None}
        calls_there = folded_rows.keys_of_page(cursor, "calls", head.id, after, head.head_seq)
        self._correct(cursor, "calls", ended, [*ended, *(calls_there - touched.keys())])
        for table in OF_ONE_EVENT:
            rows: dict[Key, Any] = {row.seq: row for row in getattr(changes, table)}
            row_keys = rows.keys() | folded_rows.keys_of_page(cursor, table, head.id, after, head.head_seq)
            self._correct(cursor, table, rows, list(row_keys))
            for seq in row_keys:
                self._remaining[table].pop(seq, None)
        for id_, row in touched.items():
            if row.finished_seq is None:
                self._remaining["calls"][id_] = None
            else:
                self._remaining["calls"].pop(id_, None)
        for done in (changes.new_calls, changes.changed_calls, *(getattr(changes, table) for table in OF_ONE_EVENT)):
            done.clear()

    def _correct(self, cursor: CursorWrapper, table: str, expected: dict[Key, Any], row_keys: Collection[Key]) -> None:
        """Correct those rows that differ and can no longer change."""
        every = folded_rows.wrong(cursor, table, self.head.id, expected, row_keys)
        for at in range(0, len(every), LOCKED):
            with write_transaction():
                self._lock(cursor)
                part = folded_rows.wrong(cursor, table, self.head.id, expected, every[at : at + LOCKED])
                self._write(cursor, table, expected, part)

    def _write(self, cursor: CursorWrapper, table: str, expected: dict[Key, Any], row_keys: list[Key]) -> None:
        if row_keys:
            folded_rows.correct(cursor, table, self.head.id, expected, row_keys)
            self.corrected += len(row_keys)

    def _note_rest(self, cursor: CursorWrapper) -> None:
        """Note what can be compared only at the head, and the rows that come from no event.

        Rows of events appended from here on are written as a whole or changed individually: only calls depend on
        others.
        """
        pk, head, changes = self.head.id, self.head.head_seq, self._changes
        folded: dict[str, Collection[tuple[int, str]]] = {
            "runs": changes.runs.keys(),
            "approvals": changes.approvals.keys(),
            "responses": changes.responses.keys(),
            "usages": changes.usages.keys(),
            "participants": changes.participants.keys(),
        }
        for table, places in folded.items():
            self._remaining[table].update(dict.fromkeys(key for _, key in places))
            self._remaining[table].update(dict.fromkeys(folded_rows.keys(cursor, table, pk)))
        for table in ("calls", *OF_ONE_EVENT):
            self._remaining[table].update(dict.fromkeys(folded_rows.outside(cursor, table, pk, head)))

    def _is_right(self, cursor: CursorWrapper) -> bool:
        """Compare all that remains without a lock; the result is valid if nothing was appended in the meantime."""
        self._fold_on(cursor)
        is_right = self._is_head_right(cursor) and not any(
            folded_rows.wrong(cursor, table, self.head.id, self._wanted(table, left), left)
            for table, left in self._remaining.items()
        )
        return is_right and self._stored(cursor)[0] == self.head.head_seq

    def _settle(self, cursor: CursorWrapper) -> bool:
        """Correct a part of what remains, under the lock and at the head; return whether that was the last part."""
        self._fold_on(cursor)
        with write_transaction():
            upto = self._lock(cursor)
            while self._fold(cursor, upto, LOCKED) and self.head.head_seq < upto:
                if self._put_off < PUT_OFF:  # much was appended in a moment: that is folded without the lock
                    self._put_off += 1
                    return False
            self._put_off = 0
            for table, left in self._remaining.items():
                row_keys = list(islice(left, LOCKED))
                if row_keys:
                    expected = self._wanted(table, row_keys)
                    self._write(
                        cursor, table, expected, folded_rows.wrong(cursor, table, self.head.id, expected, row_keys)
                    )
                    for key in row_keys:
                        del left[key]
                    return False
            if not self._is_head_right(cursor):
                self._write_head(cursor)
        return True

    def _wanted(self, table: str, row_keys: Collection[Key]) -> dict[Key, Any]:
        """Return those of these rows that the fold still holds, by key."""
        changes, pk = self._changes, self.head.id
        rows: dict[Key, Any] = {}
        for key in map(str, row_keys):
            if table == "calls":
                row: Any = changes.open_calls[pk].find(key)
            elif table == "participants":
                row = self._participant((pk, key))
            else:
                row = getattr(changes, table).get((pk, key)) if table not in OF_ONE_EVENT else None
            if row is not None:
                rows[key] = row
        return rows

    def _participant(self, at: tuple[int, str]) -> tuple[Any, ...] | None:
        changes = self._changes
        if (kind := changes.participants.get(at)) is None:
            return None
        return *at, kind, at in changes.named, at in changes.reachable, changes.asked_at.get(at, 0)

    def _is_head_right(self, cursor: CursorWrapper) -> bool:
        self.head.settle()
        if self._stored(cursor)[1:] != values_of(self.head):
            return False
        if (fork := self._changes.forks.get(self.head.id)) is None:
            return True
        cursor.execute(_FORK, [fork[0], self.head.id])
        named, parent, *places = cursor.fetchone()
        return bool(parent == named and places == [*fork[1:]])

    def _write_head(self, cursor: CursorWrapper) -> None:
        cursor.execute(_CORRECT, [*values_of(self.head), self.head.id])
        sql_runs.write_responses(cursor, RowChanges(forks=self._changes.forks))
        self.corrected += 1

    def _lock(self, cursor: CursorWrapper) -> int:
        """Lock the conversation and return its head."""
        return int(self._stored(cursor, " FOR UPDATE" if cursor.db.vendor == "postgresql" else "")[0])

    def _stored(self, cursor: CursorWrapper, lock: str = "") -> tuple[Any, ...]:
        cursor.execute(_HEAD + lock, [self.head.id])
        row = cursor.fetchone()
        if row is None:
            raise Gone(self.head.key)
        return tuple(row)


def begin(pk: int, key: str) -> tuple[ConversationHead, RowChanges]:
    """Return a conversation's head and rows before its first event, with what later events say about earlier ones:
    which are copies, and the ids of observed calls that the erasure of its id kept.

    The last event that names a fork directly follows its copies, because a fork of a fork has also copied its parent's.
    What a copied event says is of the conversation that was copied.
    """
    events = Event.objects.filter(conversation_id=pk, kind__in=(FORKED, ID_ERASED))
    rows = [row for row in events.values_list("seq", "kind", "body", "principal") if is_people(row[3])]
    copied = max((forks.copies(body, seq) for seq, kind, body, _ in rows if kind == FORKED), default=0)
    call_ids: dict[tuple[int, int], str] = {}
    for seq, kind, body, _ in rows:
        if kind == ID_ERASED and seq > copied:
            call_ids |= {(pk, called): id_ for called, id_ in kept_calls_of(body).items()}
    return ConversationHead(id=pk, key=key, copied_seq=copied), RowChanges(is_whole=True, call_ids=call_ids)
