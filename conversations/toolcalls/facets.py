"""How many calls each value of a filter would leave: 999 at most are counted, and never past the bound of a walk.

A value counts under all other filters. `12+` says that so many are among those that were looked at. One facet is two
queries at most, whatever its values: by the index of its name, or, where the others leave few calls, over those.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from conversations.toolcalls import conditions, listing
from conversations.toolcalls.conditions import BY_ITSELF, Conditions, Test
from conversations.toolcalls.filters import STATUSES, Filters
from conversations.toolcalls.listing import Walk

MOST = 999
WALK = 500  # calls that one count looks at
KNOWN = 200  # values of a name that are offered for typing
SHOWN = 8  # of them, the most frequent

COLUMNS = {
    "status": "status", "agent": "agent", "tool": "name", "origin": "origin", "server": "mcp_server", "by": "approver",
}  # fmt: skip
# From value to value by the index: as many steps as values, however many calls each has.
_VALUES = """WITH RECURSIVE found(value) AS (
SELECT * FROM (SELECT {0} FROM conversations_toolcall WHERE {0}>'' ORDER BY {0} LIMIT 1) AS f UNION ALL
SELECT (SELECT {0} FROM conversations_toolcall WHERE {0}>found.value ORDER BY {0} LIMIT 1)
FROM found WHERE found.value IS NOT NULL) SELECT value FROM found WHERE value IS NOT NULL LIMIT %s"""


@dataclass(frozen=True, slots=True)
class Value:
    """One value. `count` is how many calls it would leave, `is_more` whether there may be more than that."""

    value: str
    count: int
    is_more: bool
    is_chosen: bool

    @property
    def words(self) -> str:
        """The count as it is drawn."""
        return f"{self.count:,}{'+' if self.is_more else ''}"


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of one name, the most frequent first; `known` are all that were found, for typing."""

    name: str
    values: list[Value]
    known: list[str]


def facets(filters: Filters) -> list[Facet]:
    """Answer a facet for status and for each name that has values."""
    made = [_facet(name, filters) for name in COLUMNS]
    return [facet for facet in made if facet.known]


def values_of(column: str) -> list[str]:
    """Answer the values of an indexed column in order, `KNOWN` at most."""
    return [str(value) for (value,) in listing.fetch(_VALUES.format(column), [KNOWN])]


def _facet(name: str, filters: Filters) -> Facet:
    column, chosen, others = COLUMNS[name], getattr(filters, name), filters.without(name)
    known = list(STATUSES) if name == "status" else values_of(column)
    asked = conditions.of(others, now=datetime.now(UTC))
    walk = listing.choose(asked, WALK // listing.TEXT_SHARE if filters.q else WALK)
    counts, bound = _counts(column, sorted({*known, *chosen}), asked, walk, chosen)
    values = [Value(one, min(n, MOST), n > MOST or one in bound, one in chosen) for one, n in counts.items()]
    values = [one for one in values if one.count or one.is_more or one.is_chosen]
    if name == "status":
        return Facet(name, sorted(values, key=lambda one: STATUSES.index(one.value)), known)
    values.sort(key=lambda one: (not one.is_chosen, -one.count, one.value))
    return Facet(name, values[: max(SHOWN, len(chosen))], known)


def _counts(
    column: str, values: Sequence[str], asked: Conditions, walk: Walk, chosen: Sequence[str]
) -> tuple[Counter[str], set[str]]:
    """Count each value; and say which ones may have more calls than were counted, since the walk ended."""
    if asked.tests and _are_few(asked, walk):
        return _grouped(column, asked, walk), set()
    sizes = _each(column, values, asked.bounds(), [], MOST + 1)
    if not walk.rest and not asked.tests:
        return sizes, set()
    often = sorted(sizes, key=lambda one: (one not in chosen, -sizes[one], one))[: max(SHOWN, len(chosen))]
    rest = [*asked.tests.values(), *walk.rest]
    return _each(column, often, asked.bounds(), rest, walk.bound), {one for one in often if sizes[one] > walk.bound}


def _are_few(asked: Conditions, walk: Walk) -> bool:
    """Tell whether the others leave no more calls than may be looked at: a way by itself has no floor, however long."""
    if walk.rest or walk.floor:
        return walk.floor is None
    return listing.count([walk.way.whole, *asked.bounds(walk.way)], walk.bound + 1) <= walk.bound


def _grouped(column: str, asked: Conditions, walk: Walk) -> Counter[str]:
    """Count all values at once where the others leave no more calls than may be looked at."""
    where, values = listing.together([walk.way.whole, *asked.bounds(walk.way), *walk.rest])
    named = f"t.{column}||''"  # a form that no index serves: grouping in its order would look at every call there is
    rows = listing.fetch(f"SELECT {named},COUNT(*) FROM conversations_toolcall t WHERE {where} GROUP BY 1", values)
    return Counter({value: number for value, number in rows if value})


def _each(column: str, some: Sequence[str], bounds: Sequence[Test], rest: Sequence[Test], most: int) -> Counter[str]:
    """Count the calls of each value that pass `rest`, among its newest `most`."""
    if not some:
        return Counter()
    inside, held = listing.together([Test(f"t.{column}=%s"), *bounds])
    passing, passed = listing.together([Test("1=1"), *rest])
    columns, order = ("t.*", f" ORDER BY {BY_ITSELF.newest}") if rest else ("1", "")
    walk = f"SELECT {columns} FROM conversations_toolcall t WHERE {inside}{order} LIMIT %s"
    part = f"SELECT %s,COUNT(*) FROM ({walk}) AS t WHERE {passing}"
    values = [value for one in some for value in (one, one, *held, most, *passed)]
    return Counter(dict(listing.fetch(" UNION ALL ".join([part] * len(some)), values)))
