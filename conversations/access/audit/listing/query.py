"""The newest matching entries: along one index, within a bounded walk, keyset by seq.

Principal and target have indexes; the matches in each are counted up to the bound. If one has fewer than the bound, all
its entries are read and the answer is complete. Otherwise the walk ends at the bound, the page says how far back it
looked, and its cursor continues from there: nothing is ever skipped, and no page costs more than the bound.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from conversations.access.audit.listing import sql_filters
from conversations.access.audit.listing.filters import AuditFilters
from conversations.access.audit.listing.sql_filters import FULL_SCAN, AuditConditions, AuditIndexScan
from conversations.listing.page import WALK, ListPage, cut_page, read_cursor
from conversations.listing.sql_conditions import SqlCondition, fetch_branches, fetch_rows, join_conditions

CHUNK = 500  # entries read at a time to look into their reasons


class EntryRow(NamedTuple):
    """An entry's row. `at` is µs UTC."""

    seq: int
    at: int
    principal: str
    acting_as: str
    verb: str
    target: str
    before: str
    after: str
    reason: str
    outcome: str
    correlation: str
    digest: str
    prev_hash: str
    hash: str


_SELECT = ",".join(f"t.{column}" for column in EntryRow._fields)


EntryPage = ListPage[EntryRow, int]


class EntryScanPlan(NamedTuple):
    """The chosen index, and the last seq that is read; 0 if it is all of them."""

    scan: AuditIndexScan
    floor: int


def newest(filters: AuditFilters, *, before: int | None = None, limit: int = 50, walk: int = WALK) -> EntryPage:
    """Return the newest matching entries below `before`; at most `walk` entries are read."""
    conditions = sql_filters.conditions_for(filters, before)
    plan = _choose(conditions, walk)
    entries = list(islice(_read(conditions, plan, limit + 1), limit + 1))
    return cut_page(entries, limit, lambda entry: entry.seq, floor=plan.floor or None, walk=walk)


def position_of(cursor: str) -> int | None:
    """Return the seq of a cursor, None for an empty one. Raises Invalid if it is not one of ours."""
    numbers = read_cursor(cursor, 1)
    return numbers[0] if numbers else None


def at_of(seq: int) -> int | None:
    """Return when an entry was made, µs UTC; None if there is none with this number."""
    rows = fetch_rows("SELECT at FROM conversations_auditentry WHERE seq=%s", [seq])
    return rows[0][0] if rows else None


def _choose(conditions: AuditConditions, bound: int) -> EntryScanPlan:
    """Return the scan with the fewest entries; each is counted up to the bound, from its index alone."""
    best, least = EntryScanPlan(FULL_SCAN, 0), None
    if not conditions.tests and not conditions.words:
        return best
    for scan in (*conditions.scans, FULL_SCAN):
        if not conditions.rest(scan) and not conditions.words:
            return EntryScanPlan(scan, 0)  # nothing to pass over
        size, floor = _measure(conditions, scan, bound)
        if least is None or size < least:
            best, least = EntryScanPlan(scan, floor), size
    return best


def _measure(conditions: AuditConditions, scan: AuditIndexScan, bound: int) -> tuple[int, int]:
    """Return the number of a scan's entries, counted to slightly above the bound, and the seq where the bound ends it;
    0 if there are no more."""
    share = max(1, bound // len(scan.branches))
    total, floors = 0, [0]
    for branch in scan.branches:
        where, values = join_conditions([branch, scan.between(conditions.above, conditions.below)])
        seqs = f"SELECT {scan.seq} AS s FROM conversations_auditentry t WHERE {where} ORDER BY {scan.seq} DESC LIMIT %s"
        size, last = fetch_rows(f"SELECT COUNT(*),MIN(s) FROM ({seqs}) AS counted", [*values, share])[0]
        is_cut = size == share and bool(_behind(scan, branch, conditions.above, last))
        total += size + is_cut
        floors.append(last if is_cut else 0)
    return total, max(floors)


def _behind(scan: AuditIndexScan, branch: SqlCondition, above: int, below: int) -> list[tuple[Any, ...]]:
    where, values = join_conditions([branch, scan.between(above, below)])
    return fetch_rows(f"SELECT 1 FROM conversations_auditentry t WHERE {where} LIMIT 1", values)


def _read(conditions: AuditConditions, plan: EntryScanPlan, limit: int) -> Iterator[EntryRow]:
    """Yield entries as long as the caller asks for more; entries whose reasons are searched are read in chunks."""
    below, most = conditions.below, CHUNK if conditions.words else limit
    while True:
        entries = _piece(conditions._replace(below=below, above=max(conditions.above, plan.floor - 1)), plan.scan, most)
        yield from (entry for entry in entries if _says(entry, conditions.words))
        if len(entries) < most:
            return
        below = entries[-1].seq


def _piece(conditions: AuditConditions, scan: AuditIndexScan, limit: int) -> list[EntryRow]:
    bounds = scan.between(conditions.above, conditions.below)
    branches = [[branch, bounds, *conditions.rest(scan)] for branch in scan.branches]
    merged = ("*", "t.seq DESC")
    rows = fetch_branches(branches, "conversations_auditentry", _SELECT, f"{scan.seq} DESC", limit, merged)
    return [EntryRow(*row) for row in rows]


def _says(entry: EntryRow, words: Sequence[str]) -> bool:
    """Return whether an entry's reason contains the words; done in Python, since the databases disagree on case."""
    reason = entry.reason.casefold() if words else ""
    return all(word in reason for word in words)
