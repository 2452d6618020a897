"""The index on PostgreSQL: a tsvector under GIN, read in blocks of ids from the newest on.

GIN has no order: for the newest 50 of a word with 300,000 hits it fetches and sorts all of them. So each row also holds
the mark of its block (2,048 ids), `conversations_searchword` says which blocks contain a word, and a block is queried
by its mark: GIN then starts from the few rows of the block. `id+0` keeps the planner off the primary key, along which
it would test row by row for rare words.
"""

import time
from collections.abc import Collection, Iterator, Sequence

from django.db.backends.utils import CursorWrapper

from conversations.events.log import sql_blocks
from conversations.search.index_rows import WORDS_TABLE, IndexRow, Wanted, blocks_of

TABLE = "conversations_search"
LAST = 16_383  # positions of a tsvector
MAX_PLACES = 255  # of one word
FIRST = 256  # blocks looked up by the first statement, for two words; the next look at eight times as many
MAX_ASKED = 64  # of them asked together
_NEWEST = f"""SELECT id FROM {TABLE} WHERE words @@ %s::tsquery AND id+0>=%s AND id+0<%s
ORDER BY id+0 DESC LIMIT %s"""


class Postgres:
    """The statements for PostgreSQL; see `index_tables.Tables`."""

    block = 11

    def insert(self, cursor: CursorWrapper, rows: Sequence[IndexRow]) -> None:
        """Insert rows."""
        flat = [value for row in rows for value in (row.id, _vector(row, self.block))]
        sql_blocks.execute_rows(cursor, f"INSERT INTO {TABLE}(id,words) VALUES %s ON CONFLICT DO NOTHING", 2, flat)
        words_by_block = blocks_of(rows, self.block)
        for name, sign in (("characters", "."), ("marks", ":")):
            for block, entries in blocks_of(rows, self.block, name).items():
                words_by_block.setdefault(block, set()).update(sign + entry for entry in entries)
        pairs = sorted((word, block) for block, entries in words_by_block.items() for word in entries)
        cursor.execute(
            f"INSERT INTO {WORDS_TABLE}(word,block) SELECT * FROM unnest(%s::text[],%s::bigint[])"
            " ON CONFLICT DO NOTHING",
            [[word for word, _ in pairs], [block for _, block in pairs]],
        )

    def delete(self, cursor: CursorWrapper, rows: Sequence[IndexRow]) -> None:
        """Delete rows."""
        cursor.execute(f"DELETE FROM {TABLE} WHERE id=ANY(%s)", [[row.id for row in rows]])

    def empty(self, cursor: CursorWrapper) -> None:
        """Delete all rows."""
        cursor.execute(f"TRUNCATE {TABLE}, {WORDS_TABLE}")

    def forget_words(self, cursor: CursorWrapper, pairs: Collection[tuple[str, int]]) -> None:
        """Delete those that occur nowhere in their block."""
        cursor.execute(
            f"DELETE FROM {WORDS_TABLE} w USING unnest(%s::text[],%s::bigint[]) gone(word,block)"
            " WHERE w.word=gone.word AND w.block=gone.block AND NOT EXISTS"
            f"(SELECT 1 FROM {TABLE} WHERE words @@ format('%%L & %%L',gone.word,':b'||gone.block)::tsquery)",
            [[word for word, _ in pairs], [block for _, block in pairs]],
        )

    def find(
        self, cursor: CursorWrapper, query: Wanted, low: int, high: int, limit: int, deadline: float
    ) -> tuple[list[int], int]:
        """Return the newest ids, reading as many blocks at a time as should be enough, given the hits so far."""
        cursor.execute(f"SELECT COALESCE(MAX(id),0) FROM {TABLE}")
        high = min(high, cursor.fetchone()[0] + 1)
        ids: list[int] = []
        tsquery, looked, most = _tsquery(query), 0, 1
        for width, blocks in self._blocks(cursor, query, low >> self.block, (high - 1) >> self.block):
            rare = width // max(len(blocks), 1)  # the fewer blocks have it, the less stands in each
            most = min(MAX_ASKED, max(most, rare**2))
            while blocks:
                batch, blocks = blocks[:most], blocks[most:]
                marks = "|".join(f"':b{block}'" for block in batch)
                cursor.execute(_NEWEST, [f"{tsquery} & ({marks})", low, high, limit - len(ids)])
                ids += [id_ for (id_,) in cursor.fetchall()]
                if len(ids) >= limit:
                    return ids, ids[-1]
                looked += len(batch)
                if time.monotonic() > deadline:
                    return ids, max(low, batch[-1] << self.block)
                most = min(MAX_ASKED, max(1, (limit - len(ids)) * looked // len(ids)) if ids else 2 * looked)
        return ids, low

    def condition_of(self, query: Wanted) -> tuple[str, str]:
        """Return a condition on an event `e`, and its value."""
        return f"EXISTS (SELECT 1 FROM {TABLE} s WHERE s.id=e.id AND s.words @@ %s::tsquery)", _tsquery(query)

    def _blocks(self, cursor: CursorWrapper, query: Wanted, first: int, last: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the blocks in which every wanted word occurs, newest first, in batches with the range they cover."""
        sets = [list(alternatives) for places in query.terms for alternatives in places]
        sets += [[f".{character}"] for character in query.characters] + [[f":{mark}"] for mark in query.marks]
        block_query = f"SELECT DISTINCT block FROM {WORDS_TABLE} WHERE word=ANY(%s) AND block BETWEEN %s AND %s"
        sql = " INTERSECT ".join([block_query] * len(sets)) + " ORDER BY block DESC"
        width = max(FIRST // max(len(sets) - 1, 1), 1)
        while first <= last:
            begin = max(first, last - width + 1)
            cursor.execute(sql, [value for word_set in sets for value in (word_set, begin, last)])
            yield last - begin + 1, [block for (block,) in cursor.fetchall()]
            last, width = begin - 1, width * 8


def _vector(row: IndexRow, bits: int) -> str:
    """Write a tsvector. Words have only letters and digits, so nothing needs an escape."""
    places: dict[str, list[str]] = {}
    for at, word in enumerate(row.words, 1):
        positions = places.setdefault(word, [])
        if len(positions) < MAX_PLACES and at <= LAST:
            positions.append(str(at))
    lexemes = [f"'{word}':{','.join(positions)}" for word, positions in places.items()]
    lexemes += [f"'.{character}'" for character in row.characters] + [f"':{mark}'" for mark in row.marks]
    return " ".join([*lexemes, f"':b{row.id >> bits}'"])


def _tsquery(query: Wanted) -> str:
    """Write a query as a tsquery."""
    parts = [
        "<->".join("(" + "|".join(f"'{word}'" for word in alternatives) + ")" for alternatives in places)
        for places in query.terms
    ]
    parts += [f"'.{character}'" for character in query.characters] + [f"':{mark}'" for mark in query.marks]
    return " & ".join(f"({part})" for part in parts)
