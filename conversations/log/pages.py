"""Read the history: after a seq for those who follow, by drawn entries for pages. Keyset always, never a write."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.errors import NotFound
from conversations.log import calls
from conversations.log.calls import COLUMNS
from conversations.log.events import Call, Stored
from conversations.log.rows import marks

PAGE = 60  # drawn entries
RESUME = 500  # events of one read while catching up
READ_SIZE = 4 << 20  # characters of one read, or one event
PREVIEW = 5000  # how far back a page looks for tokens without an output, in events


class Page(NamedTuple):
    """A window of a conversation: entries to draw in seq order, the calls of its tool steps, and open previews."""

    key: str
    events: list[Stored]
    calls: dict[int, Call]  # by the seq of either step
    open_tokens: list[Stored]  # tokens that no output has replaced, in seq order
    first_seq: int  # of the window; 0 when empty
    last_seq: int
    head: int
    has_older: bool
    has_newer: bool
    preview_after: int
    previous: Stored | None  # the event right before the first, for what depends on its neighbour


def head(key: str) -> int:
    """Answer a conversation's head seq; 0 when there is none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT head_seq FROM conversations_conversation WHERE key=%s", [key])
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def heads(keys: Sequence[str]) -> dict[str, int]:
    """Answer the head seqs of these conversations, by one query a thousand."""
    found: dict[str, int] = {}
    with connection.cursor() as cursor:
        for at in range(0, len(keys), 1000):
            some = keys[at : at + 1000]
            cursor.execute(
                f"SELECT key,head_seq FROM conversations_conversation WHERE key IN ({marks(len(some))})", some
            )
            found.update(cursor.fetchall())
    return found


def read_after(key: str, after: int, limit: int = RESUME) -> list[Stored]:
    """Read up to `limit` events after a seq, in order; fewer once they pass 4 MiB, none only at the end."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM conversations_event WHERE conversation_id="
            "(SELECT id FROM conversations_conversation WHERE key=%s) AND seq>%s ORDER BY seq LIMIT %s",
            [key, after, limit],
        )
        return _some(key, cursor)


def read_told(key: str, after: int, limit: int = RESUME) -> list[Stored]:
    """Read as `read_after` does, tokens left out: of those the outputs say the same."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM conversations_event WHERE conversation_id="
            "(SELECT id FROM conversations_conversation WHERE key=%s) AND seq>%s AND kind<>'token'"
            " ORDER BY seq LIMIT %s",
            [key, after, limit],
        )
        return _some(key, cursor)


def read_before(key: str, before: int, limit: int = RESUME) -> list[Stored]:
    """Read up to `limit` events right before a seq, in order; fewer once they pass 4 MiB."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {COLUMNS} FROM conversations_event WHERE conversation_id="
            "(SELECT id FROM conversations_conversation WHERE key=%s) AND seq<%s ORDER BY seq DESC LIMIT %s",
            [key, before, limit],
        )
        return _some(key, cursor)[::-1]


def _some(key: str, cursor: CursorWrapper) -> list[Stored]:
    events, size = [], 0
    for row in cursor:
        events.append(Stored(key, *row))
        size += len(events[-1].body)
        if size > READ_SIZE:
            break
    return events


def preview_before(key: str, seq: int) -> int:
    """Answer the seq of the last output without a run at or before `seq`: it names the group of the tokens after it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id,preview_after FROM conversations_conversation WHERE key=%s", [key])
        row = cursor.fetchone()
        return _preview_before(cursor, row[0], row[1], seq) if row else 0


def _preview_before(cursor: CursorWrapper, conversation: int, newest: int, seq: int) -> int:
    """Look back from `seq` where the newest one is later, at most 5,000 events: older groups are closed anyway."""
    if newest <= seq:
        return newest
    cursor.execute(
        "SELECT seq FROM conversations_event WHERE conversation_id=%s AND seq BETWEEN %s AND %s AND kind<>'token'"
        " AND kind='output' AND run IS NULL ORDER BY seq DESC LIMIT 1",
        [conversation, seq - PREVIEW, seq],
    )
    found = cursor.fetchone()
    return int(found[0]) if found else 0


def newest_page(key: str, limit: int = PAGE) -> Page:
    """Read the newest drawn entries, with the tokens of open turns. Raises NotFound for an unknown conversation."""
    return page_before(key, None, limit)


def page_before(key: str, before: int | None, limit: int = PAGE) -> Page:
    """Read the drawn entries right before a seq (None: the newest)."""
    with connection.cursor() as cursor:
        window = _Window(cursor, key)
        rows, has_older = window.backwards(before if before is not None else window.head + 1, limit)
        last = before - 1 if before is not None else window.head
        return window.page(rows, first=rows[0].seq if rows and has_older else 1, last=last, has_older=has_older)


def page_after(key: str, after: int, limit: int = PAGE) -> Page:
    """Read the drawn entries right after a seq."""
    with connection.cursor() as cursor:
        window = _Window(cursor, key)
        rows, has_newer = window.forwards(after, limit)
        last = rows[-1].seq if rows and has_newer else window.head
        return window.page(rows, first=after + 1, last=last, has_older=after > 0)


def page_around(key: str, seq: int, limit: int = PAGE) -> Page:
    """Read the drawn entries around a seq, about half before it and half from it on."""
    with connection.cursor() as cursor:
        window = _Window(cursor, key)
        older, has_older = window.backwards(seq, limit // 2)
        newer, has_newer = window.forwards(seq - 1, limit - len(older))
        last = newer[-1].seq if newer and has_newer else window.head
        return window.page(older + newer, first=older[0].seq if has_older else 1, last=last, has_older=has_older)


class _Window:
    """One read of one conversation, on one cursor."""

    def __init__(self, cursor: CursorWrapper, key: str) -> None:
        self.cursor, self.key = cursor, key
        cursor.execute(
            "SELECT id,head_seq,preview_after FROM conversations_conversation WHERE key=%s AND NOT is_staged", [key]
        )
        row = cursor.fetchone()
        if row is None:
            raise NotFound(f"no conversation {key!r}")
        self.id, self.head, self.preview_after = row

    def backwards(self, before: int, limit: int) -> tuple[list[Stored], bool]:
        """Read `limit` drawn entries before a seq, ascending, and whether there are older ones."""
        return self._entries("seq<%s", "DESC", before, limit)

    def forwards(self, after: int, limit: int) -> tuple[list[Stored], bool]:
        """Read `limit` drawn entries after a seq, ascending, and whether there are newer ones."""
        return self._entries("seq>%s", "ASC", after, limit)

    def _entries(self, where: str, order: str, start: int, limit: int) -> tuple[list[Stored], bool]:
        """A later step of a known call is no entry of its own: it is drawn in the call's block."""
        entries: list[Stored] = []
        while True:
            self.cursor.execute(
                f"SELECT {COLUMNS} FROM conversations_event WHERE conversation_id=%s AND {where} AND kind<>'token'"
                f" ORDER BY seq {order} LIMIT %s",
                [self.id, start, limit + 1],
            )
            rows = [Stored(self.key, *row) for row in self.cursor.fetchall()]
            results = calls.folded(self.cursor, self.id, rows)
            entries += [row for row in rows if row.seq not in results]
            if len(entries) > limit or len(rows) <= limit:
                break
            start = rows[-1].seq
        kept = entries[:limit]
        return (kept if order == "ASC" else kept[::-1]), len(entries) > limit

    def page(self, entries: list[Stored], *, first: int, last: int, has_older: bool) -> Page:
        """Add what the entries need: calls, open tokens, the neighbour before."""
        return Page(
            key=self.key,
            events=entries,
            calls=calls.of_window(self.cursor, self.id, self.key, entries),
            open_tokens=self._open_tokens(first, last),
            first_seq=first if entries else 0,
            last_seq=last,
            head=self.head,
            has_older=has_older,
            has_newer=last < self.head,
            preview_after=_preview_before(self.cursor, self.id, self.preview_after, first - 1),
            previous=self._one(first - 1),
        )

    def _one(self, seq: int) -> Stored | None:
        self.cursor.execute(
            f"SELECT {COLUMNS} FROM conversations_event WHERE conversation_id=%s AND seq=%s", [self.id, seq]
        )
        row = self.cursor.fetchone()
        return Stored(self.key, *row) if row else None

    def _open_tokens(self, first: int, last: int) -> list[Stored]:
        """Read the tokens that no output has replaced: of runs in the window, and at the tail the foreign preview."""
        first = max(first, last - PREVIEW)
        self.cursor.execute(
            "SELECT run,turn,MIN(seq) FROM conversations_event WHERE conversation_id=%s AND seq BETWEEN %s AND %s"
            " AND kind='token' GROUP BY run,turn",
            [self.id, first, last],
        )
        tokens: list[Stored] = []
        for run, turn, start in self.cursor.fetchall():
            if run is None:
                if last >= self.head:
                    tokens += self._tokens("run IS NULL", [], max(first, self.preview_after + 1), last)
            elif not self._has_output(run, turn, start):
                tokens += self._tokens("run=%s AND turn IS NOT DISTINCT FROM %s", [run, turn], first, last)
        return sorted(tokens, key=lambda token: token.seq)

    def _has_output(self, run: str, turn: int | None, after: int) -> bool:
        self.cursor.execute(
            "SELECT 1 FROM conversations_event WHERE conversation_id=%s AND seq>%s AND kind<>'token' AND kind='output'"
            " AND run=%s AND turn IS NOT DISTINCT FROM %s LIMIT 1",
            [self.id, after, run, turn],
        )
        return self.cursor.fetchone() is not None

    def _tokens(self, where: str, values: list[str | int | None], first: int, last: int) -> list[Stored]:
        self.cursor.execute(
            f"SELECT {COLUMNS} FROM conversations_event WHERE conversation_id=%s AND seq BETWEEN %s AND %s"
            f" AND kind='token' AND {where} ORDER BY seq",
            [self.id, first, last, *values],
        )
        return [Stored(self.key, *row) for row in self.cursor.fetchall()]
