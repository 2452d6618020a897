"""The newest matching calls: by one index, within a bounded walk (benchmark `toolcalls`). Keyset cursors in both
directions.

Which filter's index is walked is decided by counting each up to the bound. If one has fewer calls than the bound, all
of them are read and the answer is complete. Otherwise the walk ends at the bound, the page says how far back it looked,
and its cursor continues from there: nothing is ever skipped, and no page costs more than the bound.
"""

from collections.abc import Sequence
from typing import NamedTuple

from conversations.listing.page import WALK, ListPage, cut_page, read_cursor
from conversations.listing.sql_conditions import Fetch, SqlCondition, fetch_branches, fetch_rows, join_conditions
from conversations.tool_calls.listing import sql_filters
from conversations.tool_calls.listing.filters import CallFilters
from conversations.tool_calls.listing.sql_filters import (
    BY_ITSELF,
    FULL_SCAN,
    UNSTAGED,
    CallConditions,
    CallPosition,
    IndexScan,
)

TEXT_SHARE = 5  # looking into a text costs about as much as looking at so many calls


class CallColumns(NamedTuple):
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
    def place(self) -> CallPosition:
        """Return the call's position in the list."""
        return CallPosition(self.started_at, self.conversation_id, self.called_seq)


_SELECT = ",".join(f"t.{column}" for column in CallColumns._fields)


CallPage = ListPage[CallColumns, CallPosition]


class ScanPlan(NamedTuple):
    """The chosen index, and how many calls it may walk past. `floor`: where the walk ends if there are more."""

    scan: IndexScan
    rest: list[SqlCondition]
    floor: CallPosition | None
    bound: int


def newest(filters: CallFilters, *, before: CallPosition | None = None, limit: int = 50, walk: int = WALK) -> CallPage:
    """Return the newest matching calls after the position `before`; at most `walk` calls are read."""
    conditions = sql_filters.conditions_for(filters, before)
    plan = choose_plan(conditions, walk // TEXT_SHARE if filters.q else walk)
    calls = _read(conditions, plan, limit + 1)
    return cut_page(calls, limit, lambda call: call.place, floor=plan.floor, walk=plan.bound)


def position_of(cursor: str) -> CallPosition | None:
    """Return the position of a cursor, None for an empty one. Raises Invalid if it is not one of ours."""
    numbers = read_cursor(cursor, 3)
    return CallPosition(*numbers) if numbers else None


def choose_plan(conditions: CallConditions, bound: int, fetch: Fetch = fetch_rows) -> ScanPlan:
    """Return the index scan with the fewest calls; each is counted up to the bound, from its index alone."""
    staging = [UNSTAGED] if sql_filters.is_staging(fetch) else []
    if (
        len(conditions.tests) == len(conditions.scans) == 1
        and not staging
        and not (only := conditions.scans[0]).loose
        and only.is_ordered
    ):
        return ScanPlan(only, [], None, bound)  # nothing to choose, nothing to pass over
    sizes = [
        (count([scan.whole, *conditions.bounds(scan)], bound + 1, fetch), scan.rank, scan) for scan in conditions.scans
    ]
    fit = [candidate for candidate in sizes if candidate[0] <= bound or candidate[2].is_ordered]
    size, _, scan = min(fit, key=lambda candidate: candidate[:2], default=(bound + 1, 0, FULL_SCAN))
    rest = [*conditions.rest(scan), *staging]
    branches = scan.branches if len(conditions.tests) > 1 or staging or scan == FULL_SCAN else scan.loose
    is_whole = size <= bound or not rest
    return ScanPlan(scan, rest, None if is_whole else floor(conditions, scan, branches, bound, fetch), bound)


def count(tests: Sequence[SqlCondition], most: int, fetch: Fetch) -> int:
    """Count calls up to `most`."""
    where, values = join_conditions(tests)
    sql = f"SELECT COUNT(*) FROM (SELECT 1 FROM conversations_toolcall t WHERE {where} LIMIT %s) AS counted"
    return int(fetch(sql, [*values, most])[0][0])


def floor(
    conditions: CallConditions, scan: IndexScan, branches: Sequence[SqlCondition], bound: int, fetch: Fetch
) -> CallPosition | None:
    """Return where the newest `bound` calls of some branches of a scan end; None if they have no more."""
    ends = []
    for branch in branches:
        where, values = join_conditions([branch, *conditions.bounds(scan)])
        source = f"FROM conversations_toolcall t WHERE {where} ORDER BY {scan.newest}"
        parameters = [*values, max(0, bound // len(branches) - 1)]
        ends += [CallPosition(*row) for row in fetch(f"SELECT {scan.place} {source} LIMIT 1 OFFSET %s", parameters)]
    return max(ends, default=None)


def _read(conditions: CallConditions, plan: ScanPlan, limit: int) -> list[CallColumns]:
    scan = plan.scan
    floor = [scan.from_on(plan.floor)] if plan.floor else []
    branches = [[branch, *conditions.bounds(scan), *floor, *plan.rest] for branch in scan.branches]
    merged = (_SELECT, BY_ITSELF.newest)
    rows = fetch_branches(branches, "conversations_toolcall", _SELECT, scan.newest, limit, merged)
    return [CallColumns(*row) for row in rows]
