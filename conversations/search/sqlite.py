"""The index on SQLite: FTS5 without the text, its rows under the events' ids, read from the newest on.

The ascii tokenizer cuts at nothing but ASCII signs, of which our words have none: they stay as they are.
"""

import time
from collections.abc import Sequence

from django.db.backends.utils import CursorWrapper

from conversations.log import rows as blocks
from conversations.search.tables import FOUND, Row, Wanted

TABLE = "conversations_search"
FIRST = 1 << 17  # ids of the first stretch; each next one is four times as long


class Sqlite:
    """The statements; see `tables.Tables`."""

    block = 63

    def insert(self, cursor: CursorWrapper, rows: Sequence[Row]) -> None:
        """Put rows in."""
        flat = [value for row in rows for value in _values(row)]
        blocks.insert(cursor, f"INSERT INTO {TABLE}(rowid,words,characters,marks) VALUES %s", 4, flat)
        known = sorted({word for row in rows for word in row.words})
        flat = [value for word in known for value in (word, 0)]
        blocks.insert(cursor, f"INSERT OR IGNORE INTO {FOUND}(word,block) VALUES %s", 2, flat)

    def delete(self, cursor: CursorWrapper, rows: Sequence[Row]) -> None:
        """Take rows out; without the text, FTS5 has to be told what they were."""
        flat = [value for row in rows for value in ("delete", *_values(row))]
        blocks.insert(cursor, f"INSERT INTO {TABLE}({TABLE},rowid,words,characters,marks) VALUES %s", 5, flat)

    def empty(self, cursor: CursorWrapper) -> None:
        """Take out all."""
        cursor.execute(f"INSERT INTO {TABLE}({TABLE}) VALUES('delete-all')")
        cursor.execute(f"DELETE FROM {FOUND}")

    def stands(self, cursor: CursorWrapper, word: str, block: int) -> bool:
        """Tell whether a word still stands anywhere."""
        cursor.execute(f"SELECT 1 FROM {TABLE} WHERE {TABLE} MATCH %s LIMIT 1", [f'words : "{word}"'])
        return cursor.fetchone() is not None

    def find(
        self, cursor: CursorWrapper, wanted: Wanted, low: int, high: int, limit: int, deadline: float
    ) -> tuple[list[int], int]:
        """Answer the newest ids, stretch by stretch: two words that never meet are walked along to the end."""
        found: list[int] = []
        asked, length = _asked(wanted), FIRST
        if high > 1 << 62:
            cursor.execute("SELECT seq FROM sqlite_sequence WHERE name='conversations_event'")
            high = (cursor.fetchone() or [0])[0] + 1
        while high > low:
            start = max(low, high - length)
            cursor.execute(
                f"SELECT rowid FROM {TABLE} WHERE {TABLE} MATCH %s AND rowid>=%s AND rowid<%s"
                " ORDER BY rowid DESC LIMIT %s",
                [asked, start, high, limit - len(found)],
            )
            found += [id_ for (id_,) in cursor.fetchall()]
            if len(found) >= limit:
                return found, found[-1]
            high, length = start, length * 4
            if time.monotonic() > deadline:
                break
        return found, high

    def holding(self, wanted: Wanted) -> tuple[str, str]:
        """Answer a condition on an event `e`, and its value."""
        return f"EXISTS (SELECT 1 FROM {TABLE} s WHERE s.rowid=e.id AND s.{TABLE} MATCH %s)", _asked(wanted)


def _values(row: Row) -> tuple[int, str, str, str]:
    return row.id, " ".join(row.words), " ".join(sorted(row.characters)), " ".join(sorted(row.marks))


def _asked(wanted: Wanted) -> str:
    """Write it for FTS5. Words have letters and digits only, so they need no escapes; quotes keep AND and OR words."""
    parts = [f'marks : "{mark}"' for mark in wanted.marks]
    parts += [f'characters : "{one}"' for one in wanted.characters]
    for places in wanted.terms:
        *before, last = places
        begin = " ".join(place[0] for place in before)
        phrases = " OR ".join(f'"{begin} {word}"' if begin else f'"{word}"' for word in last)
        parts.append(f"words : ({phrases})")
    return " AND ".join(parts)
