"""The newest entries that match: along one index, within a bounded walk, keyset by seq.

Principal and target have an index; each is counted in it, up to the bound. Is one rarer than the bound, all its entries
are looked at and the answer is whole. Else the walk ends at the bound, the page says how far back it looked, and its
cursor goes on from there: nothing is ever skipped, and no page costs more than the bound.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from conversations.auditlog import conditions
from conversations.auditlog.conditions import EVERY, Conditions, Way
from conversations.auditlog.filters import Filters
from conversations.errors import Invalid
from conversations.toolcalls.conditions import Test
from conversations.toolcalls.listing import fetch, together

WALK = 5_000  # entries that one page looks at, when it has to look at more than it shows
FAR = 100_000  # those of a page whose reader asked to look further
CHUNK = 500  # entries read at a time to look into their reasons


class Entry(NamedTuple):
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
    prev_hash: str
    hash: str


_SELECT = ",".join(f"t.{column}" for column in Entry._fields)


class Page(NamedTuple):
    """Some entries, newest first. `after`: the seq that older ones lie below, None at the end.

    `looked_at` is how many entries were walked past when the walk ended before the page was full, else 0.
    """

    entries: list[Entry]
    after: int | None
    looked_at: int = 0


class Walk(NamedTuple):
    """The way that was chosen, and the last seq of it that is looked at; 0 where that is all of them."""

    way: Way
    floor: int


def newest(filters: Filters, *, before: int | None = None, limit: int = 50, walk: int = WALK) -> Page:
    """Answer the newest entries that match, those below `before`; at most `walk` entries are looked at."""
    asked = conditions.of(filters, before)
    chosen = _choose(asked, walk)
    entries = []
    for entry in _read(asked, chosen, limit + 1):
        entries.append(entry)
        if len(entries) > limit:
            return Page(entries[:limit], entries[limit - 1].seq)
    return Page(entries, chosen.floor or None, walk if chosen.floor else 0)


def seq_of(cursor: str) -> int | None:
    """Read a cursor. Raises `Invalid` for one that is none of ours."""
    if not cursor:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise Invalid("expected a cursor from an earlier answer", field="before")
    return int(cursor)


def at_of(seq: int) -> int | None:
    """Answer when an entry was made, in µs; None for one that is not there."""
    rows = fetch("SELECT at FROM conversations_auditentry WHERE seq=%s", [seq])
    return rows[0][0] if rows else None


def _choose(asked: Conditions, bound: int) -> Walk:
    """Choose the way with the fewest entries; each is counted up to the bound, by its index alone."""
    best, least = Walk(EVERY, 0), None
    if not asked.tests and not asked.words:
        return best
    for way in (*asked.ways, EVERY):
        if not asked.rest(way) and not asked.words:
            return Walk(way, 0)  # nothing to pass over
        size, floor = _measure(asked, way, bound)
        if least is None or size < least:
            best, least = Walk(way, floor), size
    return best


def _measure(asked: Conditions, way: Way, bound: int) -> tuple[int, int]:
    """Count a way's entries, to a little over the bound, and say where the bound ends it; 0 when it has no more."""
    share = max(1, bound // len(way.branches))
    total, floors = 0, [0]
    for branch in way.branches:
        where, values = together([branch, way.between(asked.above, asked.below)])
        inner = f"SELECT {way.seq} AS s FROM conversations_auditentry t WHERE {where} ORDER BY {way.seq} DESC LIMIT %s"
        size, last = fetch(f"SELECT COUNT(*),MIN(s) FROM ({inner}) AS counted", [*values, share])[0]
        is_cut = size == share and bool(_behind(way, branch, asked.above, last))
        total += size + is_cut
        floors.append(last if is_cut else 0)
    return total, max(floors)


def _behind(way: Way, branch: Test, above: int, below: int) -> list[tuple[Any, ...]]:
    where, values = together([branch, way.between(above, below)])
    return fetch(f"SELECT 1 FROM conversations_auditentry t WHERE {where} LIMIT 1", values)


def _read(asked: Conditions, walk: Walk, limit: int) -> Iterator[Entry]:
    """Read entries until nobody asks for more; those whose reasons are looked into by chunks."""
    below, most = asked.below, CHUNK if asked.words else limit
    while True:
        entries = _piece(asked._replace(below=below, above=max(asked.above, walk.floor - 1)), walk.way, most)
        yield from (entry for entry in entries if _says(entry, asked.words))
        if len(entries) < most:
            return
        below = entries[-1].seq


def _piece(asked: Conditions, way: Way, limit: int) -> list[Entry]:
    parts, values = [], []
    for number, branch in enumerate(way.branches):
        where, some = together([branch, way.between(asked.above, asked.below), *asked.rest(way)])
        part = f"SELECT {_SELECT} FROM conversations_auditentry t WHERE {where} ORDER BY {way.seq} DESC LIMIT %s"
        parts.append(f"SELECT * FROM ({part}) AS b{number}")
        values += [*some, limit]
    if len(parts) == 1:
        return [Entry(*row) for row in fetch(part, values)]
    sql = f"SELECT * FROM ({' UNION ALL '.join(parts)}) AS t ORDER BY t.seq DESC LIMIT %s"
    return [Entry(*row) for row in fetch(sql, [*values, limit])]


def _says(entry: Entry, words: Sequence[str]) -> bool:
    """Tell it here: what the other case of a letter is, the databases do not agree on."""
    reason = entry.reason.casefold() if words else ""
    return all(word in reason for word in words)
