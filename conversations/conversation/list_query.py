"""Which conversations the list shows: by an index, or by a bounded walk, newest first. Called by `conversation_list`
alone.

A filter that fits many conversations fills its page among the newest few. Else each filter's index is asked for at most
`FEW` conversations: of the smallest answer each one is looked at, and the page is whole. Where no index has so few, the
walk goes on to its bound, the page says how far back it looked, and its cursor goes on from there: nothing is ever
skipped, and no page costs more than the bound.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db import connection

from conversations.access import permissions
from conversations.core.errors import Invalid
from conversations.events.log.sql import marks
from conversations.events.payload import clean_text
from conversations.listing.sql_conditions import SqlCondition, fetch_rows, join_conditions
from conversations.search import title_index

CHUNKS = (300, 1_700)  # conversations looked at in turn, when more is looked at than is shown
FEW = 700  # conversations of an index that are all looked at
MAX_WORDS = 8  # of a filter; more are ignored
MAX_WORDS_SIZE = 1000  # characters of it; databases have bounds of their own
STATES = ("open", "paused", "person", "mine", "waiting")

NEWEST = "t.last_at DESC,t.id DESC"  # as the index of visible conversations has them
VISIBLE = SqlCondition("NOT t.is_staged")
PAUSED = SqlCondition("t.state='paused'")
OWNED = SqlCondition("NOT (t.owner='')")  # in the words of its index
NONE = SqlCondition("1=0")
_PARTICIPATES = """EXISTS(SELECT 1 FROM conversations_participant p{}
WHERE p.conversation_id=t.id AND p.name IN (%s,%s){}{})"""
_APART = " OFFSET 0"  # PostgreSQL tests each row by itself, and does not read all that pass to join them
_HOLDS = {
    "sqlite": """(t.title LIKE %s ESCAPE '\\' OR t.key LIKE %s ESCAPE '\\' OR t.last_line LIKE %s ESCAPE '\\')""",
    "postgresql": """UPPER(t.title||chr(10)||t.key||chr(10)||t.last_line) LIKE UPPER(%s)""",  # no word has a line's end
}
_OPEN_APPROVALS = """conversations_approval a WHERE a.status='pending'
AND EXISTS(SELECT 1 FROM conversations_run r WHERE r.id=a.run AND r.status='waiting')"""
_BY_NAME = "SELECT conversation_id FROM conversations_participant WHERE name IN (%s,%s)"
_IDS = "SELECT t.id FROM conversations_conversation t WHERE "


@dataclass(frozen=True, slots=True)
class ListFilters:
    """What the list is filtered by. `holder`: who `mine` is, a principal; `agent`: whom an agent's token speaks for."""

    q: str = ""
    participant: str = ""
    state: str = ""
    holder: str = ""
    agent: str = ""

    @property
    def is_empty(self) -> bool:
        """Tell that every conversation fits."""
        return not (self.words or self.participant or self.state or self.agent)

    @property
    def words(self) -> list[str]:
        """What a title, an id or a last line must hold, each."""
        return clean_text(self.q[:MAX_WORDS_SIZE]).split()[:MAX_WORDS]

    @property
    def names(self) -> tuple[str, ...]:
        """How the participant may be spelled on the wire; empty where none is asked for."""
        return (clean_text(self.participant), clean_text(f"agent:{self.participant}")) if self.participant else ()


class ListPosition(NamedTuple):
    """Where a conversation stands in the list; no two stand at one. `at` is µs UTC."""

    at: int
    id: int

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"


class FoundConversations(NamedTuple):
    """Conversations by the columns that were asked for, newest first, one more than the limit where there are more.

    `after`: where the walk ended at its bound, with more behind it; None where all was looked at.
    """

    rows: list[tuple[Any, ...]]
    after: ListPosition | None = None


def find(filters: ListFilters, columns: Sequence[str], *, before: str, limit: int) -> FoundConversations:
    """Return the newest conversations that match, those behind the cursor `before`. Raises Invalid for a wrong one."""
    position = _place_of(before) if before else None
    fitting = conditions(filters)
    select = ",".join(f"t.{column}" for column in columns)

    if filters.is_empty:
        return FoundConversations(read_newest(select, [*fitting, *_behind(position)], limit + 1))
    rows: list[tuple[Any, ...]] = []
    for number, size in enumerate(CHUNKS):
        left = limit + 1 - len(rows)
        if number == 1 and (few := _few(filters)) is not None:
            # In an order that no index has: SQLite would walk along that one, and look for these among all.
            chunk = [*fitting, *_behind(position), _among(few)]
            return FoundConversations(rows + read_newest(select, chunk, left, order="t.last_at+0 DESC,t.id DESC"))
        floor = _floor(filters, position, size)
        rows += read_newest(select, [*fitting, *_behind(position), *_from_on(floor)], left)
        if len(rows) > limit or floor is None:
            return FoundConversations(rows)
        position = floor
    return FoundConversations(rows, position)


def read_newest(
    select: str, tests: Sequence[SqlCondition], limit: int, *, order: str = NEWEST, offset: int = 0
) -> list[tuple[Any, ...]]:
    """Read the newest conversations that pass, by SQL as it is: building a query takes longer than answering it."""
    where, values = join_conditions(tests)
    sql = f"SELECT {select} FROM conversations_conversation t WHERE {where} ORDER BY {order} LIMIT %s OFFSET %s"
    return fetch_rows(sql, [*values, limit, offset])


def _floor(filters: ListFilters, position: ListPosition | None, size: int) -> ListPosition | None:
    """Return where so many conversations behind a place end; None when there are no more than these."""
    walked = [VISIBLE, PAUSED] if filters.state == "paused" else [VISIBLE]  # along an index in the list's order
    ends = read_newest("t.last_at,t.id", [*walked, *_behind(position)], 1, offset=size - 1)
    return next((ListPosition(*end) for end in ends), None)


def _behind(position: ListPosition | None) -> Iterator[SqlCondition]:
    """Keep what stands behind a place: by the index a range of moments, then the rows of that very moment."""
    if position is not None:
        yield SqlCondition("t.last_at<=%s AND NOT (t.last_at=%s AND t.id>=%s)", (position.at, *position))


def _from_on(floor: ListPosition | None) -> Iterator[SqlCondition]:
    """Keep what does not stand behind the end of a walk."""
    if floor is not None:
        yield SqlCondition("t.last_at>=%s AND NOT (t.last_at=%s AND t.id<%s)", (floor.at, *floor))


def _among(ids: Sequence[int]) -> SqlCondition:
    if not ids:
        return NONE
    if connection.vendor == "postgresql":
        return SqlCondition("t.id=ANY(%s)", (list(ids),))
    return SqlCondition(f"t.id IN ({marks(len(ids))})", tuple(ids))


def _place_of(cursor: str) -> ListPosition:
    at, mark, row_id = cursor.partition(".")
    if not (mark and at.isdecimal() and row_id.isdecimal() and len(cursor) <= 38):
        raise Invalid("must be a cursor from an earlier response", field="before")
    return ListPosition(int(at), int(row_id))


def conditions(filters: ListFilters) -> list[SqlCondition]:
    """Return what a visible conversation passes: every word somewhere, the participant, the state, who may look."""
    tests = [VISIBLE, *_in_state(filters), *map(_holds, filters.words)]
    if filters.names:
        tests.append(_participates("participant_by_name", "", filters.names))
    if filters.agent:
        tests.append(_participates("participant_named", " AND p.is_named", permissions.names_of(filters.agent)))
    return tests


def _participates(index: str, further: str, names: tuple[str, ...]) -> SqlCondition:
    """Test that a name is among the participants. SQLite would look each up in the index by conversation, where every
    one is on a page of its own; in the index by name they are side by side."""
    if connection.vendor == "sqlite":
        return SqlCondition(_PARTICIPATES.format(f" INDEXED BY {index}", further, ""), names)
    return SqlCondition(_PARTICIPATES.format("", further, _APART), names)


def _holds(word: str) -> SqlCondition:
    """Test that a word is part of the title, the id or the last line, in upper or lower case."""
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    test = _HOLDS[connection.vendor]
    return SqlCondition(test, (f"%{escaped}%",) * test.count("%s"))


def _in_state(filters: ListFilters) -> Iterator[SqlCondition]:
    """Test the state as it is shown: owned goes before paused goes before open (§3.6). Raises Invalid for no state."""
    match filters.state:
        case "":
            return
        case "waiting":
            apart = _APART if connection.vendor == "postgresql" else ""
            yield SqlCondition(f"EXISTS(SELECT 1 FROM {_OPEN_APPROVALS} AND a.conversation_id=t.id{apart})")
        case "mine":
            yield SqlCondition("t.owner=%s", (filters.holder,)) if filters.holder else NONE
        case "person":
            yield OWNED
        case "paused":
            yield PAUSED
            yield SqlCondition("t.owner=''")
        case "open":
            yield SqlCondition("t.state='open' AND t.owner=''")
        case _:
            raise Invalid(f"must be one of {', '.join(STATES)}", field="state")


def _few(filters: ListFilters) -> list[int] | None:
    """Return all conversations that one filter leaves by its index, of the filter with the fewest; None for too many.

    Others may be among them: each is held against all filters. Words are looked up only where no other filter leaves
    few: PostgreSQL reads all that hold a word before it returns the first.
    """
    smallest: list[int] | None = None
    for sql, values in _by_index(filters):
        ids = [id_ for (id_,) in fetch_rows(f"{sql} LIMIT %s", [*values, FEW + 1])]
        if len(ids) <= FEW and (smallest is None or len(ids) < len(smallest)):
            smallest = sorted(set(ids))
    return title_index.find(filters.words, FEW) if smallest is None and filters.words else smallest


def _by_index(filters: ListFilters) -> Iterator[SqlCondition]:
    """Return what reads the conversations of each filter that has an index of few columns."""
    if filters.names:
        yield SqlCondition(_BY_NAME, filters.names)
    if filters.agent:
        yield SqlCondition(f"{_BY_NAME} AND is_named", permissions.names_of(filters.agent))
    match filters.state:
        case "waiting":
            yield SqlCondition(f"SELECT a.conversation_id FROM {_OPEN_APPROVALS}")
        case "mine":
            yield SqlCondition(f"{_IDS}{OWNED.sql} AND t.owner=%s", (filters.holder,))
        case "person":
            yield SqlCondition(f"{_IDS}{OWNED.sql}")
        case "paused":
            yield SqlCondition(f"{_IDS}{PAUSED.sql}")
