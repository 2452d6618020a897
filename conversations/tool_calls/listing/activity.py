"""The filtered calls over time: how many there are, and how many of them failed. For the tool-calls page.

The count is exact up to a bound, and so are its spans: of more calls than that the newest are counted, and it says
since when. Without filters an index tells all; else the calls along the list's own scan are looked at, as many as its
page may pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from conversations.core.micros import DAY, to_micros
from conversations.listing.page import WALK
from conversations.listing.sql_conditions import Fetch, SqlCondition, fetch_rows, join_conditions
from conversations.models.tool_call import FAILED
from conversations.tool_calls.listing import query, sql_filters
from conversations.tool_calls.listing.filters import STATUSES, CallFilters
from conversations.tool_calls.listing.query import TEXT_SHARE
from conversations.tool_calls.listing.sql_filters import FULL_SCAN, CallConditions, IndexScan

COUNTED = 10_000  # calls
MAX_SPANS = 48
SECOND, MINUTE, HOUR = 1_000_000, 60_000_000, 3_600_000_000  # µs
WIDTHS = (
    *(SECOND * n for n in (1, 2, 5, 10, 15, 30)), *(MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR * n for n in (1, 2, 3, 6, 12)), *(DAY * n for n in (1, 2, 7, 14, 30, 90, 365, 3650)),
)  # fmt: skip
Branches = Sequence[Sequence[SqlCondition]]  # of a scan: what the calls of each must fulfil
BY_STATUS = IndexScan("status", tuple(SqlCondition("t.status=%s", (s,)) for s in STATUSES), SqlCondition("1=1"), 99)


@dataclass(frozen=True, slots=True)
class CallActivity:
    """Calls in spans of `width` µs from `start` (µs UTC), all of them and the failed ones.

    `counted_from`: the moment before which none were counted (µs UTC); None when all were. `everything` is how many
    calls there are in the same time without other filters, `COUNTED` + 1 for more than that; None if nothing filters.
    """

    start: int
    width: int
    calls: list[int]
    failed: list[int]
    counted_from: int | None
    everything: int | None

    @property
    def end(self) -> int:
        """Where the last span ends, µs UTC."""
        return self.start + self.width * len(self.calls)


def activity(filters: CallFilters, *, now: datetime | None = None, fetch: Fetch = fetch_rows) -> CallActivity | None:
    """Count the calls that match; None where there are none."""
    moment = now or datetime.now(UTC)
    conditions = sql_filters.conditions_for(filters, now=moment)
    plan = query.choose_plan(conditions, WALK // TEXT_SHARE if filters.q else WALK, fetch)
    scan, floor = plan.scan, plan.floor
    if floor is None and not plan.rest:
        floor = query.floor(conditions, scan, scan.branches, COUNTED, fetch)
    if scan == FULL_SCAN and not plan.rest:
        scan = BY_STATUS  # which has the status in its index
    counted = conditions._replace(begins=floor.at) if floor else conditions
    tests = [
        [branch, *counted.bounds(scan), *([scan.from_on(floor)] if floor else []), *plan.rest]
        for branch in scan.branches
    ]
    begin = conditions.begins if conditions.begins is not None else floor.at if floor else _oldest(scan, tests, fetch)
    if begin is None:
        return None
    start, width, spans = _spans(begin, min(conditions.until or to_micros(moment), to_micros(moment)))
    calls, failed = [0] * spans, [0] * spans
    for slot, status, number in _grouped(scan, tests, start, width, fetch):
        place = min(int(slot), spans - 1)  # a clock may be ahead of ours
        calls[place] += number
        failed[place] += number if status in FAILED else 0
    if not any(calls):
        return None
    return CallActivity(start, width, calls, failed, floor.at if floor else None, _everything(conditions, fetch))


def _oldest(scan: IndexScan, branches: Branches, fetch: Fetch) -> int | None:
    """Return the moment of the oldest call that is counted."""
    parts, values = [], []
    for tests in branches:
        where, given = join_conditions(tests)
        parts.append(f"SELECT MIN({scan.moment}) AS at FROM conversations_toolcall t WHERE {where}")
        values += given
    ((oldest,),) = fetch(f"SELECT MIN(at) FROM ({' UNION ALL '.join(parts)}) AS counted", values)
    return None if oldest is None else int(oldest)


def _grouped(scan: IndexScan, branches: Branches, start: int, width: int, fetch: Fetch) -> list[tuple[Any, ...]]:
    """Return the number of calls by span and status. The order keeps a query to the index of its scan."""
    parts, values = [], [start, width]
    for number, tests in enumerate(branches):
        where, given = join_conditions(tests)
        part = f"SELECT {scan.moment} AS at,t.status AS status FROM conversations_toolcall t WHERE {where}"
        parts.append(f"SELECT * FROM ({part} ORDER BY {scan.newest} LIMIT %s) AS b{number}")
        values += [*given, COUNTED]
    counted = " UNION ALL ".join(parts)
    return fetch(f"SELECT (at-%s)/%s,status,COUNT(*) FROM ({counted}) AS counted GROUP BY 1,2", values)


def _spans(begin: int, end: int) -> tuple[int, int, int]:
    """Return where the first span begins, how long each is, and how many reach the end: all begin at round times."""
    end = max(end, begin)
    width = next((width for width in WIDTHS if (end - begin) // width < MAX_SPANS - 1), WIDTHS[-1])
    start = begin // width * width
    return start, width, (end - start) // width + 1


def _everything(conditions: CallConditions, fetch: Fetch) -> int | None:
    if not conditions.tests or sql_filters.is_staging(fetch):
        return None
    where, values = join_conditions([FULL_SCAN.whole, *conditions.bounds(FULL_SCAN)])
    newest = f"SELECT 1 FROM conversations_toolcall t WHERE {where} ORDER BY {FULL_SCAN.newest} LIMIT %s"
    ((number,),) = fetch(f"SELECT COUNT(*) FROM ({newest}) AS counted", [*values, COUNTED + 1])
    return int(number)
