"""The index on SQLite: FTS5 without stored text, rows under the events' ids, read from the newest on.

The ascii tokenizer splits only at ASCII signs, which our words do not contain, so they stay as they are.
"""

import json
import time
from collections.abc import Collection, Sequence

from django.db.backends.utils import CursorWrapper

from conversations.events.log import sql_blocks
from conversations.search.index_rows import WORDS_TABLE, IndexRow, Wanted

TABLE = "conversations_search"
FIRST = 1 << 17  # ids of the first stretch; each next one is four times as long


class Sqlite:
    """The statements for SQLite; see `index_tables.Tables`."""

    block = 63

    def insert(self, cursor: CursorWrapper, rows: Sequence[IndexRow]) -> None:
        """Insert rows."""
        flat = [value for row in rows for value in _values(row)]
        sql_blocks.execute_rows(cursor, f"INSERT INTO {TABLE}(rowid,words,characters,marks) VALUES %s", 4, flat)
        distinct_words = sorted({word for row in rows for word in row.words})
        flat = [value for word in distinct_words for value in (word, 0)]
        sql_blocks.execute_rows(cursor, f"INSERT OR IGNORE INTO {WORDS_TABLE}(word,block) VALUES %s", 2, flat)

    def delete(self, cursor: CursorWrapper, rows: Sequence[IndexRow]) -> None:
        """Delete rows; without stored text, FTS5 needs their words again."""
        flat = [value for row in rows for value in ("delete", *_values(row))]
        sql_blocks.execute_rows(cursor, f"INSERT INTO {TABLE}({TABLE},rowid,words,characters,marks) VALUES %s", 5, flat)

    def empty(self, cursor: CursorWrapper) -> None:
        """Delete all rows."""
        cursor.execute(f"INSERT INTO {TABLE}({TABLE}) VALUES('delete-all')")
        cursor.execute(f"DELETE FROM {WORDS_TABLE}")

    def forget_words(self, cursor: CursorWrapper, pairs: Collection[tuple[str, int]]) -> None:
        """Delete those that occur nowhere: there is one block."""
        cursor.execute(
            f"DELETE FROM {WORDS_TABLE} WHERE word IN (SELECT value FROM json_each(%s)) AND NOT EXISTS"
            f"(SELECT 1 FROM {TABLE} WHERE {TABLE} MATCH 'words : \"'||{WORDS_TABLE}.word||'\"')",
            [json.dumps([word for word, _ in pairs])],
        )

    def find(
        self, cursor: CursorWrapper, query: Wanted, low: int, high: int, limit: int, deadline: float
    ) -> tuple[list[int], int]:
        """Return the newest ids, range by range: two words that never meet would be walked to the end."""
        ids: list[int] = []
        match_query, length = _fts_query(query), FIRST
        if high > 1 << 62:
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name='conversations_event'")
            high = (cursor.fetchone() or [0])[0] + 1
        while high > low:
            start = max(low, high - length)
            cursor.execute(
                f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH %s AND rowid>=%s AND rowid<%s"
                " ORDER BY rowid DESC LIMIT %s",
                [match_query, start, high, limit - len(ids)],
            )
            ids += [id_ for (id_,) in cursor.fetchall()]
            if len(ids) >= limit:
                return ids, ids[-1]
            high, length = start, length * 4
            if time.monotonic() > deadline:
                break
        return ids, high

    def condition_of(self, query: Wanted) -> tuple[str, str]:
        """Return a condition on an event `e`, and its value."""
        return f"EXISTS (SELECT 1 FROM {TABLE} s WHERE s.rowid=e.id AND s.{TABLE} MATCH %s)", _fts_query(query)


def _values(row: IndexRow) -> tuple[int, str, str, str]:
    return row.id, " ".join(row.words), " ".join(sorted(row.characters)), " ".join(sorted(row.marks))


def _fts_query(query: Wanted) -> str:
    """Write a query for FTS5. Words have only letters and digits and need no escapes; quotes keep AND and OR plain
    words."""
    parts = [f'marks : "{mark}"' for mark in query.marks]
    parts += [f'characters : "{character}"' for character in query.characters]
    for places in query.terms:
        *before, last = places
        begin = " ".join(alternatives[0] for alternatives in before)
        phrases = " OR ".join(f'"{begin} {word}"' if begin else f'"{word}"' for word in last)
        parts.append(f"words : ({phrases})")
    return " AND ".join(parts)
