"""The index on PostgreSQL: a tsvector of ours under GIN, read block by block of ids from the newest on.

GIN knows no order: asked for the newest 50 of a word with 300,000 hits it fetches and sorts all of them. So each row
also holds the mark of its block (2,048 ids), `conversations_searchword` says which blocks hold a word, and a block is
asked for by its mark: GIN walks from the few of the block into the many of the word. `id+0` keeps the planner from the
primary key, along which it would look for rare words row by row.
"""

import time
from collections.abc import Iterator, Sequence

from django.db.backends.utils import CursorWrapper

from conversations.log import rows as statements
from conversations.search.tables import FOUND, Row, Wanted, blocks_of

TABLE = "conversations_search"
LAST = 16_383  # positions of a tsvector
MOST_PLACES = 255  # of one word
FIRST = 256  # blocks looked up by the first statement, for two words; the next look at eight times as many
MOST_ASKED = 64  # of them asked together
_NEWEST = f"""SELECT id FROM {TABLE} WHERE words @@ %s::tsquery AND id+0>=%s AND id+0<%s
ORDER BY id+0 DESC LIMIT %s"""


class Postgres:
    """The statements; see `tables.Tables`."""

    block = 11

    def insert(self, cursor: CursorWrapper, rows: Sequence[Row]) -> None:
        """Put rows in."""
        flat = [value for row in rows for value in (row.id, _vector(row, self.block))]
        statements.insert(cursor, f"INSERT INTO {TABLE}(id,words) VALUES %s ON CONFLICT DO NOTHING", 2, flat)
        known = blocks_of(rows, self.block)
        for name, sign in (("characters", "."), ("marks", ":")):
            for block, some in blocks_of(rows, self.block, name).items():
                known.setdefault(block, set()).update(sign + one for one in some)
        pairs = sorted((word, block) for block, some in known.items() for word in some)
        cursor.execute(
            f"INSERT INTO {FOUND}(word,block) SELECT * FROM unnest(%s::text[],%s::bigint[]) ON CONFLICT DO NOTHING",
            [[word for word, _ in pairs], [block for _, block in pairs]],
        )

    def delete(self, cursor: CursorWrapper, rows: Sequence[Row]) -> None:
        """Take rows out."""
        cursor.execute(f"DELETE FROM {TABLE} WHERE id=ANY(%s)", [[row.id for row in rows]])

    def empty(self, cursor: CursorWrapper) -> None:
        """Take out all."""
        cursor.execute(f"TRUNCATE {TABLE}, {FOUND}")

    def stands(self, cursor: CursorWrapper, word: str, block: int) -> bool:
        """Tell whether a word still stands in a block."""
        cursor.execute(f"SELECT 1 FROM {TABLE} WHERE words @@ %s::tsquery LIMIT 1", [f"'{word}' & ':b{block}'"])
        return cursor.fetchone() is not None

    def find(
        self, cursor: CursorWrapper, wanted: Wanted, low: int, high: int, limit: int, deadline: float
    ) -> tuple[list[int], int]:
        """Answer the newest ids, a few blocks at a time: as many as what was found so far lets expect to be enough."""
        cursor.execute(f"SELECT COALESCE(MAX(id),0) FROM {TABLE}")
        high = min(high, cursor.fetchone()[0] + 1)
        found: list[int] = []
        asked, looked, most = _asked(wanted), 0, 1
        for width, blocks in self._blocks(cursor, wanted, low >> self.block, (high - 1) >> self.block):
            rare = width // max(len(blocks), 1)  # the fewer blocks have it, the less stands in each
            most = min(MOST_ASKED, max(most, rare**2))
            while blocks:
                some, blocks = blocks[:most], blocks[most:]
                marks = "|".join(f"':b{block}'" for block in some)
                cursor.execute(_NEWEST, [f"{asked} & ({marks})", low, high, limit - len(found)])
                found += [id_ for (id_,) in cursor.fetchall()]
                if len(found) >= limit:
                    return found, found[-1]
                looked += len(some)
                if time.monotonic() > deadline:
                    return found, max(low, some[-1] << self.block)
                most = min(MOST_ASKED, max(1, (limit - len(found)) * looked // len(found)) if found else 2 * looked)
        return found, low

    def holding(self, wanted: Wanted) -> tuple[str, str]:
        """Answer a condition on an event `e`, and its value."""
        return f"EXISTS (SELECT 1 FROM {TABLE} s WHERE s.id=e.id AND s.words @@ %s::tsquery)", _asked(wanted)

    def _blocks(self, cursor: CursorWrapper, wanted: Wanted, first: int, last: int) -> Iterator[tuple[int, list[int]]]:
        """Answer the blocks in which every word wanted stands, newest first: of so many, those."""
        sets = [list(place) for places in wanted.terms for place in places]
        sets += [[f".{one}"] for one in wanted.characters] + [[f":{mark}"] for mark in wanted.marks]
        one = f"SELECT DISTINCT block FROM {FOUND} WHERE word=ANY(%s) AND block BETWEEN %s AND %s"
        sql = " INTERSECT ".join([one] * len(sets)) + " ORDER BY block DESC"
        width = max(FIRST // max(len(sets) - 1, 1), 1)
        while first <= last:
            begin = max(first, last - width + 1)
            cursor.execute(sql, [value for some in sets for value in (some, begin, last)])
            yield last - begin + 1, [block for (block,) in cursor.fetchall()]
            last, width = begin - 1, width * 8


def _vector(row: Row, bits: int) -> str:
    """Write a tsvector. Words have letters and digits only: none needs an escape."""
    places: dict[str, list[str]] = {}
    for at, word in enumerate(row.words, 1):
        some = places.setdefault(word, [])
        if len(some) < MOST_PLACES and at <= LAST:
            some.append(str(at))
    told = [f"'{word}':{','.join(some)}" for word, some in places.items()]
    told += [f"'.{one}'" for one in row.characters] + [f"':{mark}'" for mark in row.marks]
    return " ".join([*told, f"':b{row.id >> bits}'"])


def _asked(wanted: Wanted) -> str:
    """Write it as a tsquery."""
    parts = [
        "<->".join("(" + "|".join(f"'{word}'" for word in place) + ")" for place in places) for places in wanted.terms
    ]
    parts += [f"'.{one}'" for one in wanted.characters] + [f"':{mark}'" for mark in wanted.marks]
    return " & ".join(f"({part})" for part in parts)
