"""Filters as SQL: each as a condition on a row, and those with an index also as scans over their calls, newest
first."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from conversations.events.log.sql import marks
from conversations.listing.sql_conditions import Fetch, SqlCondition, fetch_rows
from conversations.models import Conversation
from conversations.models.tool_call import LOWEST, class_of
from conversations.tool_calls.listing import text_filter
from conversations.tool_calls.listing.filters import CallFilters

STARTED_AT = "t.started_at"
STARTED_AT_OF_ALL = "(t.started_at+0)"  # as the index of all calls has it, so that no other scan goes along that one


class CallPosition(NamedTuple):
    """A call's unique position in the list. `at` is µs UTC."""

    at: int
    conversation: int
    seq: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


class IndexScan(NamedTuple):
    """A scan over the calls of one filter by an index: each branch is a part of one index, in the order of the list.

    `whole`: all branches at once, or slightly more, for counting. `rank`: of scans with too many calls, the lowest is
    walked, as the rarest by guess. `loose`: branches include calls that do not match the filter, so each call is
    tested. `moment`: the index's column for the time.
    """

    field: str
    branches: tuple[SqlCondition, ...]
    whole: SqlCondition
    rank: int
    is_ordered: bool = True
    loose: tuple[SqlCondition, ...] = ()
    moment: str = STARTED_AT

    @property
    def place(self) -> str:
        """Return the columns of a call's position in the list."""
        return f"{self.moment},t.conversation_id,t.called_seq"

    @property
    def newest(self) -> str:
        """Return the ORDER BY of the list."""
        return f"{self.moment} DESC,t.conversation_id DESC,t.called_seq DESC"

    def from_on(self, floor: CallPosition) -> SqlCondition:
        """Return the condition that a call is not beyond the end of a walk."""
        return SqlCondition(f"({self.place})>=(%s,%s,%s)", tuple(floor))


FULL_SCAN = IndexScan("", (SqlCondition("1=1"),), SqlCondition("1=1"), 99, moment=STARTED_AT_OF_ALL)
BY_ITSELF = FULL_SCAN._replace(moment=STARTED_AT)  # by the index of any one column


class CallConditions(NamedTuple):
    """What a call must match: `begins`, `until` (µs UTC) and `before` apply to every scan, `tests` are by filter
    name."""

    begins: int | None
    until: int | None
    before: CallPosition | None
    tests: dict[str, SqlCondition]
    scans: list[IndexScan]

    def bounds(self, scan: IndexScan = BY_ITSELF) -> list[SqlCondition]:
        """Return the conditions on time and position for a scan."""
        conditions = [SqlCondition(f"{scan.moment}>=%s", (self.begins,))] if self.begins is not None else []
        conditions += [SqlCondition(f"{scan.moment}<=%s", (self.until,))] if self.until is not None else []
        return conditions + ([SqlCondition(f"({scan.place})<(%s,%s,%s)", tuple(self.before))] if self.before else [])

    def rest(self, scan: IndexScan) -> list[SqlCondition]:
        """Return the conditions that a scan itself does not ensure."""
        return [test for name, test in self.tests.items() if name != scan.field or scan.loose]

    def without(self, name: str) -> "CallConditions":
        """Return the conditions without one filter."""
        tests = {field: test for field, test in self.tests.items() if field != name}
        return self._replace(tests=tests, scans=[scan for scan in self.scans if scan.field != name])


def conditions_for(
    filters: CallFilters, before: CallPosition | None = None, now: datetime | None = None
) -> CallConditions:
    """Return the conditions of these filters, for calls after the position `before`."""
    tests: dict[str, SqlCondition] = {}
    scans = []
    for scan, test in (*_named(filters), *_exact(filters), *_ranges(filters), *_others(filters)):
        tests[scan.field] = test
        if scan.branches:
            scans.append(scan)
    return CallConditions(filters.begins(now or datetime.now(UTC)), filters.until, before, tests, scans)


def is_staging(fetch: Fetch = fetch_rows) -> bool:
    """Return whether an import is writing calls that are not visible yet."""
    return bool(fetch("SELECT 1 FROM conversations_conversation WHERE is_staged LIMIT 1", []))  # no ORM: each page asks


UNSTAGED = SqlCondition(
    "NOT EXISTS (SELECT 1 FROM conversations_conversation s WHERE s.id=t.conversation_id AND s.is_staged=%s)", (True,)
)


class FilteredColumn(NamedTuple):
    """An indexed column that one filter compares with its values; `rank` as of `IndexScan`."""

    name: str
    rank: int


COLUMNS = {  # by filter, in the order of the page's facets
    "status": FilteredColumn("status", 7),
    "agent": FilteredColumn("agent", 6),
    "tool": FilteredColumn("name", 5),
    "origin": FilteredColumn("origin", 8),
    "server": FilteredColumn("mcp_server", 4),
    "by": FilteredColumn("approver", 2),
}


def _named(filters: CallFilters) -> Iterator[tuple[IndexScan, SqlCondition]]:
    for field, (column, rank) in COLUMNS.items():
        if values := getattr(filters, field):
            branches = tuple(SqlCondition(f"t.{column}=%s", (value,)) for value in values)
            yield IndexScan(field, branches, _in(f"t.{column}", values), rank), _among(f"t.{column}", values)
    if values := filters.qualified:
        spaced = [SqlCondition("t.qualified_name=%s AND t.namespace IS NOT NULL", (value,)) for value in values]
        plain = [
            SqlCondition("t.name=%s AND t.qualified_name=%s AND t.namespace IS NULL", (value[:200], value))
            for value in values
        ]
        parts = " OR ".join(f"({branch.sql})" for branch in (*spaced, *plain))
        whole = SqlCondition(f"({parts})", tuple(value for branch in (*spaced, *plain) for value in branch.values))
        yield IndexScan("qualified", (*spaced, *plain), whole, 3), _among("t.qualified_name", values)


def _exact(filters: CallFilters) -> Iterator[tuple[IndexScan, SqlCondition]]:
    """Yield the filters that mostly match few calls; different agents may use the same call id."""
    if key := filters.conversation:
        conversation_id = Conversation.objects.visible().filter(key=key).values_list("id", flat=True).first() or 0
        whole = SqlCondition("t.conversation_id=%s", (conversation_id,))
        yield IndexScan("conversation", (whole,), whole, 1), SqlCondition("t.conversation_id+0=%s", (conversation_id,))
    for field in ("run", "call_id"):
        if value := getattr(filters, field):
            whole = SqlCondition(f"t.{field}=%s", (value,))
            yield IndexScan(field, (whole,), whole, 0, is_ordered=False), _among(f"t.{field}", [value])


def _ranges(filters: CallFilters) -> Iterator[tuple[IndexScan, SqlCondition]]:
    kinds = (
        ("ms", "duration_ms", "duration_class", filters.min_ms, filters.max_ms),
        ("bytes", "output_bytes", "size_class", filters.min_bytes, filters.max_bytes),
    )
    for field, column, classes, least, most in kinds:
        if least is None and most is None:
            continue
        ends = [f"t.{column}>=%s"] * (least is not None) + [f"t.{column}<=%s"] * (most is not None)
        values = tuple(value for value in (least, most) if value is not None)
        test = SqlCondition(" AND ".join(ends), values)
        first, last = class_of(least or 0) or 0, class_of(most if most is not None else 2.0**62) or 0
        branches = {number: SqlCondition(f"t.{classes}=%s", (number,)) for number in range(first, last + 1)}
        whole = SqlCondition(f"t.{classes} BETWEEN %s AND %s", (first, last))
        begins_inside = bool(least) and (first == LOWEST or least != 1 << (first - 1))
        cut = ({first} if begins_inside else set()) | ({last} if most is not None else set())
        loose = tuple(branches[number] for number in cut)
        yield IndexScan(field, tuple(branches.values()), whole, 8, loose=loose), test


def _others(filters: CallFilters) -> Iterator[tuple[IndexScan, SqlCondition]]:
    if filters.replayed == "yes":
        test = SqlCondition("t.replay_of IS NOT NULL")
        yield IndexScan("replayed", (test,), test, 2), test
    elif filters.replayed == "no":
        yield _no_scan("replayed"), SqlCondition("t.replay_of IS NULL")
    if filters.q:
        yield from _worded(filters)


def _worded(filters: CallFilters) -> Iterator[tuple[IndexScan, SqlCondition]]:
    match = text_filter.find(filters.q, filters.where)
    if match is not None and match.ids is not None:
        whole = SqlCondition(f"t.id IN ({','.join(['%s'] * len(match.ids))})" if match.ids else "1=0", tuple(match.ids))
        yield IndexScan("q", (whole,), whole, 0, is_ordered=False), SqlCondition(match.sql, match.values)
    elif match is not None:
        yield _no_scan("q"), SqlCondition(match.sql, match.values)


def _no_scan(field: str) -> IndexScan:
    """Return the filter without a scan: no index serves it, so it is tested along another scan."""
    return IndexScan(field, (), SqlCondition("1=1"), 99)


def _in(column: str, values: Sequence[str]) -> SqlCondition:
    return SqlCondition(f"{column} IN ({marks(len(values))})", tuple(values))


def _among(column: str, values: Sequence[str]) -> SqlCondition:
    """Return a condition on a column in a form that no index serves, so that the walk follows the chosen scan only."""
    return SqlCondition(f"{column}||'' IN ({marks(len(values))})", tuple(values))
