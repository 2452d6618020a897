"""The raw counterpart of what is stored on SQLite: the very same rows once more, by plain executemany."""

import sqlite3
import time
from pathlib import Path

COLUMNS = "conversation_id,seq,kind,at,principal,run,turn,event_id,body,salt,digest,hash"
TABLE = "conversations_event"
PRAGMAS = "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;PRAGMA wal_autocheckpoint=16000;PRAGMA cache_size=-65536;"


def executemany(source: Path, target: Path, newest: int) -> float:
    """Put the newest rows of a database into a fresh file with the same schema, 1,000 a transaction; return rows/s."""
    with sqlite3.connect(source) as ours:
        rows = ours.execute(f"SELECT {COLUMNS} FROM {TABLE} ORDER BY id DESC LIMIT {newest}").fetchall()[::-1]
        schema = [s for (s,) in ours.execute(f"SELECT sql FROM sqlite_master WHERE tbl_name='{TABLE}' AND sql<>''")]
    fresh = sqlite3.connect(target, isolation_level=None)
    fresh.executescript(PRAGMAS)
    for statement in schema:
        fresh.execute(statement)
    insert = f"INSERT INTO {TABLE}({COLUMNS}) VALUES ({','.join('?' * 12)})"
    start = time.perf_counter()
    for at in range(0, len(rows), 1000):
        fresh.execute("BEGIN IMMEDIATE")
        fresh.executemany(insert, rows[at : at + 1000])
        fresh.execute("COMMIT")
    rate = len(rows) / (time.perf_counter() - start)
    fresh.close()
    return rate
