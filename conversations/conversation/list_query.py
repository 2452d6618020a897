"""Which conversations the list shows: by an index, or by a bounded walk, newest first. Called only by
`conversation_list`. The group "Need a person" is read by `attention.all_needs`.

If a filter's index leaves at most `MAX_BY_INDEX` conversations, all of these are read and the page is complete.
Otherwise the page is filled by a walk in the list's order, along the index of the requested state. Words that are rare
in the newest part of the walk are looked up in the title index. If that has too many, the walk goes on to its bound,
the page says how far back it looked, and its cursor continues from there: nothing is ever skipped, and no page costs
more than the bound.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from django.db import connection

from conversations.access import permissions
from conversations.core import letter_case
from conversations.core.errors import Invalid
from conversations.events.log.sql import any_of, marks
from conversations.events.payload import clean_text
from conversations.listing.page import read_cursor
from conversations.listing.sql_conditions import SqlCondition, fetch_rows, join_conditions
from conversations.search import title_index

FIRST = 300  # conversations looked at before words are looked up
BOUND = {"sqlite": 1_400, "postgresql": 600}  # conversations of one walk: so many take 5 ms
SCATTERED = 500  # of one along a state's index: nearly each of them is on a page of its own
MAX_BY_INDEX = 700  # conversations of an index that are all looked at
MAX_WORDS = 8  # of a filter; more are ignored
MAX_WORDS_SIZE = 1000  # characters of it; databases have bounds of their own
MAX_CASES = 20  # letters beyond ASCII of a word that are compared without case: SQLite nests no more calls
STATES = ("open", "paused", "person", "mine", "waiting")

NEWEST = "t.last_at DESC,t.id DESC"  # as the index of visible conversations has them
VISIBLE = SqlCondition("NOT t.is_staged")
PAUSED = SqlCondition("t.state='paused'")
OWNED = SqlCondition("NOT (t.owner='')")  # in the words of its index
NONE = SqlCondition("1=0")
_PARTICIPATES = """EXISTS(SELECT 1 FROM conversations_participant p{}
WHERE p.conversation_id=t.id AND p.name IN ({}){}{})"""
_APART = " OFFSET 0"  # PostgreSQL tests each row by itself, and does not read all that pass to join them
_CAPTION = "t.title||'\n'||t.key||'\n'||t.last_line"  # no word has a line's end
_HOLDS = {
    "sqlite": """(t.title LIKE %s ESCAPE '\\' OR t.key LIKE %s ESCAPE '\\' OR t.last_line LIKE %s ESCAPE '\\')""",
    "postgresql": f"UPPER({_CAPTION}) LIKE UPPER(%s)",
}
_OPEN_APPROVALS = """conversations_approval a WHERE a.status='pending'
AND EXISTS(SELECT 1 FROM conversations_run r WHERE r.id=a.run AND r.status='waiting')"""
_NAMED = "SELECT conversation_id FROM conversations_participant WHERE name=%s{} ORDER BY conversation_id"
_WAITING = f"SELECT a.conversation_id FROM {_OPEN_APPROVALS} ORDER BY a.id"
_MINE = "SELECT t.id FROM conversations_conversation t WHERE NOT (t.owner='') AND t.owner=%s ORDER BY t.last_at DESC"


@dataclass(frozen=True, slots=True)
class ListFilters:
    """The filters of the list. `holder`: the principal whom `mine` means; `agent`: the agent that a token speaks
    for."""

    q: str = ""
    participant: str = ""
    state: str = ""
    holder: str = ""
    agent: str = ""

    @property
    def is_empty(self) -> bool:
        """Return whether every conversation matches."""
        return not (self.words or self.participant or self.state or self.agent)

    @property
    def words(self) -> list[str]:
        """Return the words that must each occur in the title, the id or the last line."""
        return clean_text(self.q[:MAX_WORDS_SIZE]).split()[:MAX_WORDS]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the possible spellings of the participant on the wire; empty if none is asked for."""
        prefixes = ("", "agent:", "user:") if self.participant else ()
        return tuple(clean_text(prefix + self.participant) for prefix in prefixes)


class ListPosition(NamedTuple):
    """A conversation's unique position in the list. `at` is µs UTC."""

    at: int
    id: int

    def __str__(self) -> str:
        return f"{self.at}.{self.id}"


class FoundConversations(NamedTuple):
    """Conversations as the requested columns, newest first, one more than the limit if there are more.

    `after`: where the walk ended at its bound, with more behind it; None if everything was searched.
    """

    rows: list[tuple[Any, ...]]
    after: ListPosition | None = None


def find(filters: ListFilters, columns: Sequence[str], *, before: str, limit: int) -> FoundConversations:
    """Return the newest matching conversations after the cursor `before`. Raises Invalid for an invalid cursor."""
    numbers = read_cursor(before, len(ListPosition._fields))
    position = ListPosition(*numbers) if numbers else None
    fitting = conditions(filters)
    select = ",".join(f"t.{column}" for column in columns)

    if filters.is_empty:
        return FoundConversations(read_newest(select, [*fitting, *_behind(position)], limit + 1))
    if few := _few(filters):
        return FoundConversations(_read_among(select, [*few, *_behind(position)], limit + 1))
    rows: list[tuple[Any, ...]] = []
    for size in _walks(filters):
        some, position = _walk(select, filters, position, size, limit + 1 - len(rows))
        rows += some
        if position is None:
            return FoundConversations(rows)
        if size == FIRST and (ids := title_index.find(filters.words, MAX_BY_INDEX)) is not None:
            chunk = [*fitting, *_behind(position), _among(ids)]
            return FoundConversations(rows + _read_among(select, chunk, limit + 1 - len(rows)))
    return FoundConversations(rows, position)


def read_newest(
    select: str, tests: Sequence[SqlCondition], limit: int, *, order: str = NEWEST, offset: int = 0
) -> list[tuple[Any, ...]]:
    """Read the newest conversations that match, by raw SQL: building a query takes longer than running it."""
    where, values = join_conditions(tests)
    sql = f"SELECT {select} FROM conversations_conversation t WHERE {where} ORDER BY {order} LIMIT %s OFFSET %s"
    return fetch_rows(sql, [*values, limit, offset])


def _read_among(select: str, tests: Sequence[SqlCondition], limit: int) -> list[tuple[Any, ...]]:
    """Read the newest of a few conversations, in an order without an index, or SQLite would search all of them."""
    return read_newest(select, tests, limit, order="t.last_at+0 DESC,t.id DESC")


def _walks(filters: ListFilters) -> tuple[int, ...]:
    """Return the sizes of successive walks."""
    bound = SCATTERED if filters.state in _HAVE_INDEX else BOUND[connection.vendor]
    return (FIRST, bound - FIRST) if filters.words else (bound,)


def _walk(
    select: str, filters: ListFilters, position: ListPosition | None, size: int, limit: int
) -> tuple[list[tuple[Any, ...]], ListPosition | None]:
    """Read the matches among the next `size` conversations, and where those end; None if that no longer matters.

    On PostgreSQL they are selected before any other condition is tested, so no plan can read more. SQLite walks along
    the index as told, and would first copy all of them.
    """
    along, fitting = [*_along(filters), *_behind(position)], conditions(filters)
    if connection.vendor == "sqlite":
        end = _end_of(along, size)
        rows = read_newest(select, [*_along(filters), *fitting, *_behind(position), *_from_on(end)], limit)
        return rows, end if len(rows) < limit else None
    walked, chosen = join_conditions(along)
    where, values = join_conditions(fitting)
    newest = f"SELECT * FROM conversations_conversation t WHERE {walked} ORDER BY {NEWEST} LIMIT %s"
    sql = f"SELECT {select} FROM ({newest}) t WHERE {where} ORDER BY {NEWEST} LIMIT %s"
    rows = fetch_rows(sql, [*chosen, size, *values, limit])
    return rows, _end_of(along, size) if len(rows) < limit else None


def _end_of(along: Sequence[SqlCondition], size: int) -> ListPosition | None:
    """Return the position at which so many conversations end; None if there are no more than these."""
    ends = read_newest("t.last_at,t.id", along, 1, offset=size - 1)
    return next((ListPosition(*end) for end in ends), None)


def _along(filters: ListFilters) -> Iterator[SqlCondition]:
    """Yield the conditions of a walk: an index in the list's order, that of the requested state if there is one."""
    yield VISIBLE
    if filters.state in _HAVE_INDEX:
        yield _HAVE_INDEX[filters.state]


def _behind(position: ListPosition | None) -> Iterator[SqlCondition]:
    """Yield the conditions for rows after a position: a range of moments by index, then the rows of the same moment."""
    if position is not None:
        yield SqlCondition("t.last_at<=%s AND NOT (t.last_at=%s AND t.id>=%s)", (position.at, *position))


def _from_on(end: ListPosition | None) -> Iterator[SqlCondition]:
    """Yield the conditions for rows that are not beyond the end of a walk."""
    if end is not None:
        yield SqlCondition("t.last_at>=%s AND NOT (t.last_at=%s AND t.id<%s)", (end.at, *end))


def _among(ids: Sequence[int]) -> SqlCondition:
    if not ids:
        return NONE
    test, values = any_of(ids)
    return SqlCondition(f"t.id{test}", tuple(values))


def conditions(filters: ListFilters) -> list[SqlCondition]:
    """Return the conditions for a visible conversation: every word, the participant, the state, and what the token may
    see."""
    tests = [VISIBLE, *_in_state(filters), *map(_holds, filters.words)]
    if filters.names:
        tests.append(_participates("participant_by_name", "", filters.names))
    if filters.agent:
        tests.append(_participates("participant_named", " AND p.is_named", permissions.names_of(filters.agent)))
    return tests


def _participates(index: str, further: str, names: tuple[str, ...]) -> SqlCondition:
    """Return the condition that a name is among the participants. In SQLite's index by conversation each lookup would
    read another page; in the index by name they are side by side."""
    if connection.vendor == "sqlite":
        return SqlCondition(_PARTICIPATES.format(f" INDEXED BY {index}", marks(len(names)), further, ""), names)
    return SqlCondition(_PARTICIPATES.format("", marks(len(names)), further, _APART), names)


def _holds(word: str) -> SqlCondition:
    """Return the condition that a word occurs in the title, the id or the last line, in upper or lower case."""
    pattern = "%{}%".format(word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_"))
    if not word.isascii() and (cases := _cases(word)):
        return _holds_folded(pattern.translate({ord(other): letter for other, letter in cases.items()}), cases)
    test = _HOLDS[connection.vendor]
    return SqlCondition(test, (pattern,) * test.count("%s"))


def _cases(word: str) -> dict[str, str]:
    """Return letters beyond ASCII that the text or the word may have in another case, each with its folded form."""
    letters = [letter for letter in dict.fromkeys(letter_case.fold_letters(word)) if not letter.isascii()]
    return dict(islice(((other, letter) for letter in letters for other in letter_case.other_cases(letter)), MAX_CASES))


def _holds_folded(pattern: str, cases: Mapping[str, str]) -> SqlCondition:
    """Return the condition that a text, once these letters are folded in it, holds a folded pattern."""
    if connection.vendor == "postgresql":
        values = "".join(cases), "".join(cases.values()), pattern
        return SqlCondition(f"UPPER(translate({_CAPTION},%s,%s)) LIKE UPPER(%s)", values)
    text = "replace(" * len(cases) + _CAPTION + ",%s,%s)" * len(cases)
    letters = tuple(letter for case in cases.items() for letter in case)
    return SqlCondition(f"{text} LIKE %s ESCAPE '\\'", (*letters, pattern))


def _in_state(filters: ListFilters) -> Iterator[SqlCondition]:
    """Yield the conditions of the shown state: taken over before paused before open (§3.6). Raises Invalid for an
    unknown state."""
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


def _few(filters: ListFilters) -> list[SqlCondition]:
    """Return the conditions that select by the index of the filter with the fewest conversations, and test all other
    filters; empty if all leave too many."""
    if filters.state == "waiting" and len(ids := _waiting()) <= MAX_BY_INDEX:
        return [*conditions(replace(filters, state="")), _among(ids)]
    indexes = _by_index(filters)
    if not indexes:
        return []
    parts = [_counted(part) for index in indexes.values() for part in index]
    counts = fetch_rows("SELECT " + ",".join(sql for sql, _ in parts), [value for _, some in parts for value in some])
    left = iter(counts[0])
    sizes = {name: sum(next(left) for _ in index) for name, index in indexes.items()}
    smallest = min(sizes, key=lambda name: sizes[name])
    if sizes[smallest] > MAX_BY_INDEX:
        return []
    return [*conditions(replace(filters, **{smallest: ""})), _any_of(indexes[smallest])]


def _waiting() -> list[int]:
    """Return at most `MAX_BY_INDEX` + 1 conversations with an open approval request: counting them means finding
    them."""
    return [id_ for (id_,) in fetch_rows(f"{_WAITING} LIMIT %s", [MAX_BY_INDEX + 1])]


def _counted(part: SqlCondition) -> SqlCondition:
    return SqlCondition(f"(SELECT COUNT(*) FROM ({part.sql} LIMIT %s) x)", (*part.values, MAX_BY_INDEX + 1))


def _any_of(index: Sequence[SqlCondition]) -> SqlCondition:
    """Return the condition that a conversation is among those of an index. PostgreSQL looks each up by id, whatever its
    estimates."""
    values = tuple(value for part in index for value in part.values)
    if connection.vendor == "postgresql":
        return SqlCondition(f"t.id=ANY({'||'.join(f'ARRAY({part.sql})' for part in index)})", values)
    return SqlCondition(f"t.id IN ({' UNION ALL '.join(f'SELECT * FROM ({part.sql})' for part in index)})", values)


def _by_index(filters: ListFilters) -> dict[str, list[SqlCondition]]:
    """Return for each filter with an index the conditions that read its conversations, in the index's own order."""
    indexes = {}
    if filters.names:
        indexes["participant"] = [SqlCondition(_NAMED.format(""), (name,)) for name in filters.names]
    if filters.agent:
        names = permissions.names_of(filters.agent)
        indexes["agent"] = [SqlCondition(_NAMED.format(" AND is_named"), (name,)) for name in names]
    if filters.state == "mine":
        indexes["state"] = [SqlCondition(_MINE, (filters.holder,))]
    return indexes


_HAVE_INDEX = {"paused": PAUSED, "person": OWNED, "mine": OWNED}  # states
