"""Read the history: after a seq for subscribers, by rendered entries for pages. Always by keyset, never with a
write."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from django.db import connection
from django.db.backends.utils import CursorWrapper

from conversations.core.bounded_groups import blocks
from conversations.core.errors import NotFound
from conversations.events.log import bounded_reads, call_events
from conversations.events.log.call_events import COLUMNS
from conversations.events.log.fork_lineage import ORIGIN, HistoryOrigin
from conversations.events.log.records import CallEvents, Cut, Stored
from conversations.events.log.sql import marks, wanted
from conversations.events.projections import ECHO_WITHIN, ECHOING

PAGE = 60  # drawn entries
RESUME = 500  # events of one read while catching up
PREVIEW = 5000  # how far back a page looks for tokens without an output, in events
ENTRY_BYTES = 1 << 20  # of the bodies of a page's entries, or one entry
TOKEN_BYTES = 1 << 19  # of the bodies of its open tokens, or one token a turn
NEAR, NEAR_BYTES = 8, 1 << 16  # of what was said before a window: events, and letters of one
_NEIGHBOURS = f"""SELECT {COLUMNS} FROM conversations_event WHERE conversation_id=%s AND seq BETWEEN %s AND %s
AND (kind IN ({marks(len(ECHOING))}) AND length(body)<=%s OR seq=%s) ORDER BY seq DESC LIMIT {NEAR}"""
MIN_ROWS = 16  # events of each further read, when the first had too few entries
FEWEST = 2  # entries of a page whose calls' other events are whole, however large


class EventWindow(NamedTuple):
    """A section of a conversation: entries to render in seq order, the calls of its tool steps, and open previews."""

    key: str
    events: list[Stored]
    calls: dict[int, CallEvents]  # by the seq of either step
    open_tokens: list[Stored]  # tokens that no output has replaced, in seq order
    first_seq: int  # of the window; 0 when empty
    last_seq: int
    head: int
    has_older: bool
    has_newer: bool
    preview_after: int
    before: list[Stored]  # the neighbours of the first
    cuts: dict[tuple[str | None, int | None], Cut]  # by run and turn: open turns that were too long


def head(key: str) -> int:
    """Return a conversation's head seq; 0 if it does not exist."""
    return heads([key]).get(key, 0)


def column_at(positions: Sequence[tuple[int, int]], column: str) -> dict[tuple[int, int], Any]:
    """Return a column, or an expression of columns, of the events at these positions: (conversation's row id, seq)."""
    if not positions:
        return {}
    with_clause, values = wanted(positions)
    with connection.cursor() as cursor:
        cursor.execute(
            f"{with_clause} SELECT e.conversation_id,e.seq,{column} FROM wanted CROSS JOIN conversations_event e"
            " WHERE e.conversation_id=wanted.conversation AND e.seq=wanted.seq",
            values,
        )
        return {(conversation, seq): value for conversation, seq, value in cursor.fetchall()}


def heads(keys: Sequence[str]) -> dict[str, int]:
    """Return the head seqs of these conversations, with one query per thousand."""
    return dict(_conversations("key", keys, "key,head_seq"))


def rows_and_heads(keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return each conversation's row and head, of those that exist, with one query per thousand."""
    return {key: (row, head) for key, row, head in _conversations("key", keys, "key,id,head_seq")}


def keys_of(rows: Sequence[int]) -> dict[int, str]:
    """Return the ids that these rows have now."""
    return dict(_conversations("id", rows, "id,key"))


def _conversations(column: str, values: Sequence[Any], columns: str) -> Iterator[Any]:
    with connection.cursor() as cursor:
        for block in blocks(list(values), 1000):
            sql = f"SELECT {columns} FROM conversations_conversation WHERE {column} IN ({marks(len(block))})"
            cursor.execute(sql, block)
            yield from cursor.fetchall()


def read_after(key: str, after: int, limit: int = RESUME) -> list[Stored]:
    """Read up to `limit` events after a seq, in order; fewer once they exceed 4 MiB, none only at the end."""
    return _read(key, "seq>%s", after, "seq", limit)


def read_told(key: str, after: int, limit: int = RESUME) -> list[Stored]:
    """Read like `read_after`, without the tokens whose output repeats them."""
    return _read(key, "seq>%s AND NOT kind='token'", after, "seq", limit)


def read_before(key: str, before: int, limit: int = RESUME) -> list[Stored]:
    """Read up to `limit` events right before a seq, in order; fewer once they exceed 4 MiB."""
    return _read(key, "seq<%s", before, "seq DESC", limit)[::-1]


def _read(key: str, where: str, seq: int, order: str, limit: int) -> list[Stored]:
    source = (
        "FROM conversations_event WHERE conversation_id="
        f"(SELECT id FROM conversations_conversation WHERE key=%s) AND {where}"
    )
    with connection.cursor() as cursor:
        rows = bounded_reads.rows(cursor, COLUMNS, source, [key, seq], order=order, limit=limit)
    return [Stored(key, *row) for row in rows]


def neighbours(key: str, seq: int) -> list[Stored]:
    """Return the events before `seq` that determine what is rendered as a repetition, in order: the previous one, and
    messages a little earlier."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM conversations_conversation WHERE key=%s", [key])
        row = cursor.fetchone()
        return _neighbours(cursor, row[0], key, seq) if row else []


def _neighbours(cursor: CursorWrapper, conversation: int, key: str, seq: int) -> list[Stored]:
    cursor.execute(_NEIGHBOURS, [conversation, seq - ECHO_WITHIN, seq - 1, *ECHOING, NEAR_BYTES, seq - 1])
    return [Stored(key, *row) for row in reversed(cursor.fetchall())]


def _is_neighbour(event: Stored, seq: int) -> bool:
    is_near = event.seq >= seq - ECHO_WITHIN and event.kind in ECHOING and len(event.body) <= NEAR_BYTES
    return is_near or event.seq == seq - 1


def preview_before(key: str, seq: int) -> int:
    """Return the seq of the last output without a run at or before `seq`; it names the group of the tokens after it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id,preview_after FROM conversations_conversation WHERE key=%s", [key])
        row = cursor.fetchone()
        return _preview_before(cursor, row[0], row[1], seq) if row else 0


def _preview_before(cursor: CursorWrapper, conversation: int, newest: int, seq: int) -> int:
    """Search backwards from `seq` if the newest output is later, at most 5,000 events; older groups are closed
    anyway."""
    if newest <= seq:
        return newest
    cursor.execute(
        "SELECT seq FROM conversations_event WHERE conversation_id=%s AND seq BETWEEN %s AND %s AND NOT kind='token'"
        " AND kind='output' AND run IS NULL ORDER BY seq DESC LIMIT 1",
        [conversation, seq - PREVIEW, seq],
    )
    row = cursor.fetchone()
    return int(row[0]) if row else 0


def past_page(key: str, upto: int, *, before: int | None = None, event: int = 0, limit: int = PAGE) -> EventWindow:
    """Read a page as it was right after event `upto`: the newest entries, those before a seq, or those around an
    event."""

    def read(window: "_Window", position: int | None, most: int) -> EventWindow:
        past = window.until(upto)
        return _around(past, event, most) if event else _before(past, position, most)

    return _fitting(read, key, before, limit)


def page_to_copy(key: str, upto: int, limit: int = PAGE) -> EventWindow:
    """Read the newest entries that a fork after event `upto` will have, as they will be there."""
    return _fitting(lambda window, _, most: _before(window.until(upto, is_copied=True), None, most), key, None, limit)


def newest_page(key: str, limit: int = PAGE) -> EventWindow:
    """Read the newest rendered entries, with the tokens of open turns. Raises NotFound for an unknown conversation."""
    return page_before(key, None, limit)


def page_before(key: str, before: int | None, limit: int = PAGE) -> EventWindow:
    """Read the rendered entries right before a seq (None: the newest); fewer if their bodies are large."""
    return _fitting(_before, key, before, limit)


def page_after(key: str, after: int, limit: int = PAGE) -> EventWindow:
    """Read the rendered entries right after a seq; fewer if their bodies are large."""
    return _fitting(_after, key, after, limit)


def page_around(key: str, seq: int, limit: int = PAGE) -> EventWindow:
    """Read the rendered entries around a seq, about half before it and half from it on; fewer if they are large."""
    return _fitting(_around, key, seq, limit)


Position = TypeVar("Position")


def _fitting(
    read: Callable[["_Window", Position, int], EventWindow], key: str, position: Position, limit: int
) -> EventWindow:
    """Read a page; read a shorter one if the other events of its calls are too large together."""
    while True:
        try:
            with connection.cursor() as cursor:
                return read(_Window(cursor, key), position, limit)
        except call_events.TooManyBytes:
            limit = max(FEWEST, limit // 4)


def _before(window: "_Window", before: int | None, limit: int) -> EventWindow:
    rows, has_older = window.backwards(before if before is not None else window.head + 1, limit)
    last = before - 1 if before is not None else window.head
    return window.page(rows, first=rows[0].seq if rows and has_older else 1, last=last, has_older=has_older)


def _after(window: "_Window", after: int, limit: int) -> EventWindow:
    rows, has_newer = window.forwards(after, limit)
    last = rows[-1].seq if rows and has_newer else window.head
    return window.page(rows, first=after + 1, last=last, has_older=after > 0)


def _around(window: "_Window", seq: int, limit: int) -> EventWindow:
    older, has_older = window.backwards(seq, limit // 2, most=ENTRY_BYTES // 2)
    newer, has_newer = window.forwards(seq - 1, limit - len(older), most=ENTRY_BYTES // 2)
    last = newer[-1].seq if newer and has_newer else window.head
    return window.page(older + newer, first=older[0].seq if has_older else 1, last=last, has_older=has_older)


class _Window:
    """One read of one conversation, on one cursor."""

    def __init__(self, cursor: CursorWrapper, key: str) -> None:
        self.cursor, self.key = cursor, key
        cursor.execute(
            f"SELECT head_seq,preview_after,{ORIGIN} FROM conversations_conversation WHERE key=%s AND NOT is_staged",
            [key],
        )
        row = cursor.fetchone()
        if row is None:
            raise NotFound(f"there is no conversation {key!r}")
        self.head, self.preview_after, *origin = row
        self.origin = HistoryOrigin(*origin)
        self.id = self.origin.conversation
        self.upto: int | None = None  # nothing after it is read
        self.is_copied = False  # whether what goes on at `upto` is left unfinished, as in a fork
        self.read_seqs: list[int] = []  # of the events read, which are not tokens
        self.behind: list[Stored] = []  # what was read last backwards, newest first

    @cached_property
    def calls(self) -> call_events.CallReader:
        """What reads the calls of its events."""
        return call_events.CallReader(self.cursor, self.key, self.origin, self.upto, is_copied=self.is_copied)

    def until(self, seq: int, *, is_copied: bool = False) -> "_Window":
        """Limit the history to the events up to this one."""
        self.upto = self.head = min(seq, self.head)
        self.is_copied = is_copied
        self.preview_after = _preview_before(self.cursor, self.id, self.preview_after, self.head)
        return self

    def backwards(self, before: int, limit: int, most: int = ENTRY_BYTES) -> tuple[list[Stored], bool]:
        """Read `limit` rendered entries before a seq, ascending, and whether there are older ones."""
        entries, has_more = self._entries("seq<%s", "seq DESC", before, limit, most, ahead=NEAR)
        return entries[::-1], has_more

    def forwards(self, after: int, limit: int, most: int = ENTRY_BYTES) -> tuple[list[Stored], bool]:
        """Read `limit` rendered entries after a seq, ascending, and whether there are newer ones."""
        return self._entries("seq>%s", "seq", after, limit, most)

    def _entries(
        self, where: str, order: str, start: int, limit: int, most: int, *, ahead: int = 0
    ) -> tuple[list[Stored], bool]:
        """Read entries. A later step of a known call is not an entry of its own: it is rendered in the call's block.

        Of each `limit + 1` events in turn, the bodies have `most` bytes; those after the first are read as needed.
        `ahead`: how many more events to read, if they fit, for what is rendered as a repetition.
        """
        entries: list[Stored] = []
        where += "" if self.upto is None else f" AND seq<={self.upto:d}"
        source = f"FROM conversations_event WHERE conversation_id=%s AND {where} AND NOT kind='token'"
        count = left = limit + 1
        room = most
        while True:
            page = bounded_reads.rows(
                self.cursor, COLUMNS, source, [self.id, start], order=order, limit=count + ahead, most=room
            )
            events = [Stored(self.key, *row) for row in page]
            rows = events[:count]
            self.read_seqs += [row.seq for row in rows]
            results = self.calls.folded(rows)
            entries += [row for row in rows if row.seq not in results]
            if ahead:
                self.behind = events
            room -= bounded_reads.size(page[:count])
            is_cut = room < 0
            if len(entries) > limit or (len(rows) < count and not is_cut):
                return entries[:limit], len(entries) > limit
            start = rows[-1].seq
            if is_cut and entries:
                return entries, self._is_drawn(where, start)
            left -= count
            if is_cut or not left:
                left, room = limit + 1, most
            count = min(left, max(MIN_ROWS, 2 * (limit + 1 - len(entries))))  # most calls have two steps

    def _is_drawn(self, where: str, start: int) -> bool:
        """Return whether there are events other than tokens."""
        self.cursor.execute(
            f"SELECT 1 FROM conversations_event WHERE conversation_id=%s AND {where} AND NOT kind='token' LIMIT 1",
            [self.id, start],
        )
        return self.cursor.fetchone() is not None

    def page(self, entries: list[Stored], *, first: int, last: int, has_older: bool) -> EventWindow:
        """Add what the entries need: calls, open tokens, the previous event. Raises `calls.TooManyBytes`."""
        tokens, cuts = self._open_tokens(first, last)
        return EventWindow(
            key=self.key,
            events=entries,
            calls=self.calls.of_window(entries, is_whole=len(entries) <= FEWEST),
            open_tokens=tokens,
            first_seq=first if entries else 0,
            last_seq=last,
            head=self.head,
            has_older=has_older,
            has_newer=last < self.head,
            preview_after=_preview_before(self.cursor, self.id, self.preview_after, first - 1),
            before=self._neighbours_of_first(first),
            cuts=cuts,
        )

    def _neighbours_of_first(self, first: int) -> list[Stored]:
        """Return the neighbours of the first event: of what was read already, if that suffices."""
        behind = [event for event in self.behind if event.seq < first]
        near = [event for event in behind if _is_neighbour(event, first)][:NEAR]
        if behind and behind[0].seq == first - 1 and (len(near) == NEAR or behind[-1].seq <= first - ECHO_WITHIN):
            return near[::-1]
        return _neighbours(self.cursor, self.id, self.key, first) if first > 1 else []

    def _open_tokens(self, first: int, last: int) -> tuple[list[Stored], dict[tuple[str | None, int | None], Cut]]:
        """Read the tokens that no output has replaced: those of runs in the window and, at the end, the external
        preview.

        Of a turn that is too long, only the newest tokens are read; the others are counted.
        """
        first = max(first, last - PREVIEW)
        if len([seq for seq in self.read_seqs if first <= seq <= last]) == last - first + 1:
            return [], {}  # every number is that of another event
        turns = self._open_turns(first, last)
        tokens: list[Stored] = []
        cuts: dict[tuple[str | None, int | None], Cut] = {}
        for (run, turn), start in turns.items():
            turn_tokens, cut = self._tokens(run, turn, start, last, TOKEN_BYTES // len(turns))
            tokens += turn_tokens
            if cut is not None:
                cuts[run, turn] = cut
        return sorted(tokens, key=lambda token: token.seq), cuts

    def _open_turns(self, first: int, last: int) -> dict[tuple[str | None, int | None], int]:
        """Return the turns without an output, by run and turn, each with the seq from which to read its tokens."""
        self.cursor.execute(
            "SELECT run,turn,MIN(seq) FROM conversations_event WHERE conversation_id=%s AND seq BETWEEN %s AND %s"
            " AND kind='token' GROUP BY run,turn",
            [self.id, first, last],
        )
        turns: dict[tuple[str | None, int | None], int] = {}
        for run, turn, start in self.cursor.fetchall():
            if run is not None and not self._has_output(run, turn, start):
                turns[run, turn] = start
            elif run is None and last >= self.head:
                turns[None, None] = max(first, self.preview_after + 1)
        return turns

    def _has_output(self, run: str, turn: int | None, after: int) -> bool:
        self.cursor.execute(
            "SELECT 1 FROM conversations_event WHERE conversation_id=%s AND seq>%s AND seq<=%s AND NOT kind='token'"
            " AND kind='output' AND run=%s AND turn IS NOT DISTINCT FROM %s LIMIT 1",
            [self.id, after, self.head if self.upto is not None else 1 << 62, run, turn],
        )
        return self.cursor.fetchone() is not None

    def _tokens(
        self, run: str | None, turn: int | None, first: int, last: int, most: int
    ) -> tuple[list[Stored], Cut | None]:
        whose, values = ("run IS NULL", []) if run is None else ("run=%s AND turn IS NOT DISTINCT FROM %s", [run, turn])
        source = (
            f"FROM conversations_event WHERE conversation_id=%s AND seq BETWEEN %s AND %s AND kind='token' AND {whose}"
        )
        rows = bounded_reads.rows(
            self.cursor, COLUMNS, source, [self.id, first, last, *values], order="seq DESC", most=most
        )
        tokens = [Stored(self.key, *row) for row in rows]
        if bounded_reads.size(rows) <= most:
            return tokens, None
        self.cursor.execute(f"SELECT COUNT(*),MIN(seq) {source}", [self.id, first, tokens[-1].seq - 1, *values])
        count, start = self.cursor.fetchone()
        return tokens, Cut(count, start) if count else None
