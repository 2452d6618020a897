"""The two databases: SQLite in the data directory, tuned as measured (§6), or PostgreSQL."""

from pathlib import Path
from typing import Any

from conversations.core.db_threads import POOL_SIZE

# One file, WAL, every commit on disk. Checkpoints belong to the writer thread alone: SQLite before 3.51.3 has a
# WAL-reset bug that needs two checkpointers.
PRAGMAS = {
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "wal_autocheckpoint": "0",
    "secure_delete": "ON",
    "mmap_size": "0",
    "cache_size": "-16384",  # KiB of each thread's connection: there are some thirty. Whoever writes has more
    "soft_heap_limit": str(24 << 20),  # bytes of the process: with so much in use a full cache replaces its own pages
}

POOL = {
    "min_size": 1,
    "max_size": sum(POOL_SIZE.values()),  # hardly ever all at once; what nobody wants anymore is closed
    "timeout": 5.0,  # seconds until a caller gets an error because no connection is free
    "reconnect_timeout": 1.5,  # seconds of pauses that double; the next caller begins again
    "max_idle": 60.0,
}
# A server that is gone without a word is given up after about 20 s; an address of one's own may say otherwise.
PATIENCE = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# A process that stops in the middle of a transaction must not hold others up: its locks go, and waiters get an error.
LIMITS = "-c idle_in_transaction_session_timeout=10s -c lock_timeout=8s"


class ReleasesErrors:
    """Part of both engines: the error that ended a transaction is released with it. Django keeps the last one, and with
    its frames everything that they held: bodies, secrets, and the connection of psycopg, which then stays open when its
    thread is gone."""

    rollback_exc: BaseException | None

    def set_autocommit(self, autocommit: bool, *args: Any, **kwargs: Any) -> None:
        """Turn autocommit on or off; Django turns it on whenever an outermost transaction has ended."""
        super().set_autocommit(autocommit, *args, **kwargs)  # type: ignore[misc]  # of Django's class beside it
        if autocommit:
            self.rollback_exc = None


def sqlite(data_dir: Path) -> dict[str, Any]:
    """Return Django's settings for the file in the data directory."""
    return {
        "ENGINE": "dashboard.sqlite",
        "NAME": data_dir / "switchboard.sqlite3",
        "CONN_MAX_AGE": None,  # threads live long and keep theirs
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 10,
            "init_command": "".join(f"PRAGMA {name}={value};" for name, value in PRAGMAS.items()),
        },
        "TEST": {"NAME": data_dir / "test.sqlite3"},
    }


def postgresql(url: str) -> dict[str, Any]:
    """Return Django's settings for an address, read as libpq reads it: escapes, several hosts, `?sslmode=` and so on.

    Raises `psycopg.ProgrammingError` for one that libpq does not take; its text may repeat the password.
    """
    from psycopg.conninfo import conninfo_to_dict

    conninfo = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    options = f"{LIMITS} {conninfo.pop('options', '')}".strip()
    taken = {django: conninfo.pop(libpq, "") for django, libpq in _NAMES.items()}
    return {
        "ENGINE": "dashboard.postgresql",
        **taken,
        "CONN_MAX_AGE": 0,  # given back after each piece of work
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**PATIENCE, "application_name": "switchboard", **conninfo, "options": options, "pool": dict(POOL)},
    }


_NAMES = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
