"""How many calls each value of a filter would leave: counted up to 999, and never beyond the limit of a walk.

A value counts under all other filters. `12+` means at least 12 among the calls that were read. One facet takes at most
two queries, whatever its values: by the index of its column, or, if the other filters leave few calls, over those.
Queries that several facets share run once.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from conversations.listing import sql_conditions
from conversations.listing.sql_conditions import Fetch, SqlCondition
from conversations.tool_calls.listing import query, sql_filters
from conversations.tool_calls.listing.filters import STATUSES, CallFilters
from conversations.tool_calls.listing.query import ScanPlan
from conversations.tool_calls.listing.sql_filters import BY_ITSELF, FULL_SCAN, CallConditions

MAX_COUNT = 999
WALK = 100  # calls that one count looks at: a page has forty of these counts
MAX_ALL_COUNTED = 12  # values that are all counted: none are chosen
RECENT = 300  # newest calls in which the most frequent of many values are looked for, under filters
RANKED = 300  # calls of each value that are counted to choose them, where those have too few of the values
RANKING = 12_000  # calls that are counted to choose the most frequent ones, those of all values together
KNOWN = 200  # values of a name that are offered for typing
SHOWN = 8  # of them, the most frequent

COLUMNS = {name: column.name for name, column in sql_filters.COLUMNS.items()}
# From value to value by the index: as many steps as values, however many calls each has.
_VALUES = """SELECT * FROM (WITH RECURSIVE found(value) AS (
SELECT * FROM (SELECT {0} FROM conversations_toolcall WHERE {0}>'' ORDER BY {0} LIMIT 1) AS f UNION ALL
SELECT (SELECT {0} FROM conversations_toolcall WHERE {0}>found.value ORDER BY {0} LIMIT 1)
FROM found WHERE found.value IS NOT NULL) SELECT '{0}',value FROM found WHERE value IS NOT NULL LIMIT %s) AS f{0}"""

_BOTH = 1 << 20  # two counts in one number: a query within another answers one column


@dataclass(frozen=True, slots=True)
class Value:
    """One value. `count`: how many calls it would leave; `is_more`: there may be more."""

    value: str
    count: int
    is_more: bool
    is_chosen: bool

    @property
    def words(self) -> str:
        """Return the count as shown."""
        return f"{self.count:,}{'+' if self.is_more else ''}"


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of one filter, the most frequent first; `all_values` are suggested while typing."""

    name: str
    values: list[Value]
    all_values: list[str]


def facets(filters: CallFilters) -> list[Facet]:
    """Return a facet for the status and for each filter that has values."""
    fetch, conditions = _asked_once(), sql_filters.conditions_for(filters)
    values = _values([column for column in COLUMNS.values() if column != "status"]) | {"status": list(STATUSES)}
    candidates = [_facet(name, values[column], filters, conditions, fetch) for name, column in COLUMNS.items()]
    return [facet for facet in candidates if facet.all_values or facet.values]


def _values(columns: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of indexed columns in order, at most `KNOWN` of each."""
    sql = " UNION ALL ".join(_VALUES.format(column) for column in columns)
    values: dict[str, list[str]] = {column: [] for column in columns}
    for column, value in sql_conditions.fetch_rows(sql, [KNOWN] * len(columns)):
        values[column].append(str(value))
    return values


def _asked_once() -> Fetch:
    """Return a fetch function that runs equal queries once."""
    answers: dict[tuple[str, tuple[Any, ...]], list[tuple[Any, ...]]] = {}

    def fetch(sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        question = sql, tuple(values)
        if question not in answers:
            answers[question] = sql_conditions.fetch_rows(*question)
        return answers[question]

    return fetch


def _facet(name: str, all_values: list[str], filters: CallFilters, conditions: CallConditions, fetch: Fetch) -> Facet:
    chosen, others = getattr(filters, name), conditions.without(name)
    walk = query.choose_plan(others, WALK // query.TEXT_SHARE if filters.q else WALK, fetch)
    counts, bound = _counts(COLUMNS[name], sorted({*all_values, *chosen}), others, walk, chosen, fetch)
    counts = Counter({**dict.fromkeys(chosen, 0), **counts})  # a form without a chosen value would drop it
    values = [
        Value(value, min(n, MAX_COUNT), n > MAX_COUNT or value in bound, value in chosen) for value, n in counts.items()
    ]
    values = [value for value in values if value.count or value.is_more or value.is_chosen]
    if name == "status":
        return Facet(name, sorted(values, key=lambda value: STATUSES.index(value.value)), all_values)
    values.sort(key=lambda value: (not value.is_chosen, -value.count, value.value))
    return Facet(name, values[: max(SHOWN, len(chosen))], all_values)


def _counts(
    column: str,
    values: Sequence[str],
    conditions: CallConditions,
    walk: ScanPlan,
    chosen: Sequence[str],
    fetch: Fetch,
) -> tuple[Counter[str], set[str]]:
    """Count each value; return also the values that may have more calls than were counted, because the walk ended."""
    if conditions.tests and _are_few(conditions, walk, fetch):
        return _grouped(column, conditions, walk), set()
    if not walk.rest and not conditions.tests:
        return _sizes(column, values, conditions.bounds(), chosen), set()
    often = _often(column, values, conditions, chosen, fetch)
    return _passing(column, often, conditions, [*conditions.tests.values(), *walk.rest], walk.bound)


def _often(
    column: str, values: Sequence[str], conditions: CallConditions, chosen: Sequence[str], fetch: Fetch
) -> list[str]:
    """Return the values to count: the most frequent in the newest calls, if these have enough."""
    if len(values) <= MAX_ALL_COUNTED:
        return list(values)
    recent = _recent(conditions, fetch)[column]
    sizes = Counter({value: recent[value] for value in values})
    if len(+sizes) < SHOWN:
        sizes = _each(column, values, conditions.bounds(), _share(values, RANKED))
    return _most_frequent(sizes, chosen)


def _recent(conditions: CallConditions, fetch: Fetch) -> dict[str, Counter[str]]:
    """Count the values of each column in the newest calls; one query for all facets of a page."""
    columns = tuple(COLUMNS.values())
    where, held = sql_conditions.join_conditions([FULL_SCAN.whole, *conditions.bounds(FULL_SCAN)])
    read = ",".join(f"t.{column}" for column in columns)
    sql = f"SELECT {read} FROM conversations_toolcall t WHERE {where} ORDER BY {FULL_SCAN.newest} LIMIT %s"
    rows = fetch(sql, [*held, RECENT])
    return {column: Counter(row[place] for row in rows) for place, column in enumerate(columns)}


def _sizes(column: str, values: Sequence[str], bounds: Sequence[SqlCondition], chosen: Sequence[str]) -> Counter[str]:
    """Count the calls of each value; with many values, those of the most frequent ones beyond their share."""
    share = _share(values, MAX_COUNT + 1)
    sizes = _each(column, values, bounds, share)
    if share > MAX_COUNT:
        return sizes
    cut = [value for value in _most_frequent(sizes, chosen) if sizes[value] == share]
    return sizes | _each(column, cut, bounds, MAX_COUNT + 1)


def _share(values: Sequence[str], most: int) -> int:
    """Return how many calls of each value are counted if there are so many values."""
    return min(most, max(1, RANKING // max(1, len(values))))


def _most_frequent(sizes: Counter[str], chosen: Sequence[str]) -> list[str]:
    """Return the values to show, chosen ones first."""
    return sorted(sizes, key=lambda value: (value not in chosen, -sizes[value], value))[: max(SHOWN, len(chosen))]


def _are_few(conditions: CallConditions, walk: ScanPlan, fetch: Fetch) -> bool:
    """Return whether the other filters leave no more calls than may be read: an index scan alone has no lower end."""
    if walk.rest or walk.floor:
        return walk.floor is None
    return query.count([walk.scan.whole, *conditions.bounds(walk.scan)], walk.bound + 1, fetch) <= walk.bound


def _grouped(column: str, conditions: CallConditions, walk: ScanPlan) -> Counter[str]:
    """Count all values at once if the other filters leave no more calls than may be read."""
    where, values = sql_conditions.join_conditions([walk.scan.whole, *conditions.bounds(walk.scan), *walk.rest])
    named = f"t.{column}||''"  # a form that no index serves: grouping in its order would look at every call there is
    rows = sql_conditions.fetch_rows(
        f"SELECT {named},COUNT(*) FROM conversations_toolcall t WHERE {where} GROUP BY 1", values
    )
    return Counter({value: number for value, number in rows if value})


def _each(column: str, candidates: Sequence[str], bounds: Sequence[SqlCondition], most: int) -> Counter[str]:
    """Count the calls of each value up to `most`, with one query plan for all values."""
    inside, held = sql_conditions.join_conditions([SqlCondition(f"t.{column}=v.value"), *bounds])
    counted = f"SELECT COUNT(*) FROM (SELECT 1 FROM conversations_toolcall t WHERE {inside} LIMIT %s) AS t"
    return Counter(dict(_of_values(candidates, counted, [*held, most])))


def _passing(
    column: str, candidates: Sequence[str], conditions: CallConditions, rest: Sequence[SqlCondition], bound: int
) -> tuple[Counter[str], set[str]]:
    """Count how many of the newest calls of each value match `rest`; return also the values that have more calls than
    that."""
    inside, held = sql_conditions.join_conditions([SqlCondition(f"t.{column}=v.value"), *conditions.bounds()])
    passing, passed = sql_conditions.join_conditions([SqlCondition("1=1"), *rest])
    walk = f"SELECT t.* FROM conversations_toolcall t WHERE {inside} ORDER BY {BY_ITSELF.newest} LIMIT %s"
    counted = f"SELECT COUNT(*)*{_BOTH}+COUNT(CASE WHEN {passing} THEN 1 END) FROM ({walk}) AS t"
    pairs = {value: divmod(n, _BOTH) for value, n in _of_values(candidates, counted, [*passed, *held, bound + 1])}
    counts = Counter({value: min(count, bound) for value, (_, count) in pairs.items()})
    return counts, {value for value, (looked, _) in pairs.items() if looked > bound}


def _of_values(candidates: Sequence[str], counted: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return a query's rows for each value `v.value`."""
    if not candidates:
        return []
    listed = "json_array_elements_text(%s::json)" if connection.vendor == "postgresql" else "json_each(%s)"
    sql = f"WITH v(value) AS (SELECT value FROM {listed}) SELECT v.value,({counted}) FROM v"
    return sql_conditions.fetch_rows(sql, [json.dumps(candidates), *values])
