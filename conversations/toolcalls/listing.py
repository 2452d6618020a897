"""The newest calls that match: by one index, within a bounded walk (benchmark `toolcalls`). Keyset in both directions.

Which filter's index is walked is decided by counting each, up to the bound. Is one rarer than the bound, all its calls
are looked at and the answer is whole. Else the walk ends at the bound, the page says how far back it looked, and its
cursor goes on from there: nothing is ever skipped, and no page costs more than the bound.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import connection

from conversations.errors import Invalid
from conversations.toolcalls import conditions
from conversations.toolcalls.conditions import BY_ITSELF, EVERY, UNSTAGED, Conditions, Place, Test, Way
from conversations.toolcalls.filters import Filters

WALK = 5_000  # calls that one page looks at, when it has to look at more than it shows
FAR = 100_000  # those of a page whose reader asked to look further
TEXT_SHARE = 5  # looking into a text costs about as much as looking at so many calls


class Found(NamedTuple):
    """A call's row; the fields are the columns that are read."""

    id: str
    conversation_id: int
    run: str | None
    call_id: str | None
    agent: str
    name: str
    namespace: str | None
    qualified_name: str
    lookup_key: str | None
    origin: str | None
    mcp_server: str | None
    schema: str | None
    called_seq: int
    finished_seq: int | None
    status: str
    started_at: int  # µs UTC
    duration_ms: float | None
    output_bytes: int | None
    approver: str | None
    replay_of: str | None

    @property
    def place(self) -> Place:
        """Where it stands in the list."""
        return Place(self.started_at, self.conversation_id, self.called_seq)


_SELECT = ",".join(f"t.{column}" for column in Found._fields)


@dataclass(frozen=True, slots=True)
class Page:
    """Some calls, newest first. `after`: the place that older ones stand behind, None at the end.

    `looked_at` is how many calls were walked past when the walk ended before the page was full, else 0.
    """

    calls: list[Found]
    after: Place | None
    looked_at: int = 0


class Walk(NamedTuple):
    """The way that was chosen, and how many calls it may pass. `floor`: where it ends, when there are more."""

    way: Way
    rest: list[Test]
    floor: Place | None
    bound: int


def newest(filters: Filters, *, before: Place | None = None, limit: int = 50, walk: int = WALK) -> Page:
    """Answer the newest calls that match, those behind `before`; at most `walk` calls are looked at."""
    asked = conditions.of(filters, before)
    chosen = choose(asked, walk // TEXT_SHARE if filters.q else walk)
    calls = _read(asked, chosen, limit + 1)
    if len(calls) > limit:
        return Page(calls[:limit], calls[limit - 1].place)
    return Page(calls, chosen.floor, chosen.bound if chosen.floor else 0)


def place_of(cursor: str) -> Place | None:
    """Read a cursor. Raises `Invalid` for one that is none of ours."""
    if not cursor:
        return None
    parts = cursor.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        raise Invalid("expected a cursor from an earlier answer", field="before")
    return Place(*map(int, parts))


def moment_of(place: Place) -> datetime:
    """Answer when a place in the list is."""
    return datetime.fromtimestamp(place.at / 1e6, UTC)


def choose(asked: Conditions, bound: int) -> Walk:
    """Choose the way with the fewest calls; each is counted up to the bound, by its index alone."""
    staging = [UNSTAGED] if conditions.is_staging() else []
    if (
        len(asked.tests) == len(asked.ways) == 1
        and not staging
        and not (only := asked.ways[0]).loose
        and only.is_ordered
    ):
        return Walk(only, [], None, bound)  # nothing to choose, nothing to pass over
    sizes = [(count([way.whole, *asked.bounds(way)], bound + 1), way.rank, way) for way in asked.ways]
    fit = [one for one in sizes if one[0] <= bound or one[2].is_ordered]
    size, _, way = min(fit, key=lambda one: one[:2], default=(bound + 1, 0, EVERY))
    rest = [*asked.rest(way), *staging]
    branches = way.branches if len(asked.tests) > 1 or staging or way == EVERY else way.loose
    return Walk(way, rest, None if size <= bound or not rest else _floor(asked, way, branches, bound), bound)


def count(tests: Sequence[Test], most: int) -> int:
    """Count calls, `most` at the most."""
    where, values = together(tests)
    sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM conversations_toolcall t WHERE {where} LIMIT %s) AS counted"
    return int(fetch(sql, [*values, most])[0][0])


def _floor(asked: Conditions, way: Way, branches: Sequence[Test], bound: int) -> Place | None:
    """Find where the newest `bound` calls of some branches of a way end; None when they have no more."""
    ends = []
    for branch in branches:
        where, values = together([branch, *asked.bounds(way)])
        sql = f"SELECT {way.place} FROM conversations_toolcall t WHERE {where} ORDER BY {way.newest} LIMIT 1 OFFSET %s"
        ends += [Place(*row) for row in fetch(sql, [*values, max(0, bound // len(branches) - 1)])]
    return max(ends, default=None)


def _read(asked: Conditions, walk: Walk, limit: int) -> list[Found]:
    floor = [walk.way.from_on(walk.floor)] if walk.floor else []
    parts, values = [], []
    for number, branch in enumerate(walk.way.branches):
        where, some = together([branch, *asked.bounds(walk.way), *floor, *walk.rest])
        part = f"SELECT {_SELECT} FROM conversations_toolcall t WHERE {where} ORDER BY {walk.way.newest} LIMIT %s"
        parts.append(f"SELECT * FROM ({part}) AS b{number}")
        values += [*some, limit]
    if len(parts) == 1:
        return [Found(*row) for row in fetch(part, values)]
    sql = f"SELECT {_SELECT} FROM ({' UNION ALL '.join(parts)}) AS t ORDER BY {BY_ITSELF.newest} LIMIT %s"
    return [Found(*row) for row in fetch(sql, [*values, limit])]


def together(tests: Iterable[Test]) -> tuple[str, list[Any]]:
    """Answer the SQL of all these conditions, and its values."""
    some = list(tests)
    return " AND ".join(test.sql for test in some), [value for test in some for value in test.values]


def fetch(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Ask the database; answer all rows."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
