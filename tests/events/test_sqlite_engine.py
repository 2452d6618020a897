"""Waiting for SQLite's file: it is asked for again soon, as long as the settings say; then SQLite's own error."""

import sqlite3
import threading
from contextlib import closing

import pytest
from django.conf import settings
from django.db import OperationalError

from dashboard import databases
from dashboard.sqlite.base import DatabaseWrapper
from tests.support.peaks import peak

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite("the engine is about its file")]


@pytest.fixture
def holder(tmp_path):
    """Somebody else who holds the file."""
    other = sqlite3.connect(tmp_path / "held.sqlite3", isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA journal_mode=WAL")
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def opened(tmp_path, patience, *, name="held.sqlite3", **more):
    given = settings.DATABASES["default"] | {"NAME": tmp_path / name, "TIME_ZONE": None, "AUTOCOMMIT": True}
    options = {"transaction_mode": "IMMEDIATE", "timeout": patience, **more}
    return DatabaseWrapper(given | {"OPTIONS": options, "CONN_HEALTH_CHECKS": False}, "held")


def begin(waiter):
    waiter.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)


def test_it_gives_up_with_sqlites_own_words_and_waits_elsewhere_as_before(tmp_path, holder):
    waiter = opened(tmp_path, 0.1)

    with pytest.raises(OperationalError, match="database is locked"):
        begin(waiter)

    with waiter.cursor() as cursor:
        assert cursor.execute("PRAGMA busy_timeout").fetchone() == (100,)
    waiter.close()


def test_it_begins_once_the_other_has_ended(tmp_path, holder):
    begun = threading.Event()

    def wait():
        waiter = opened(tmp_path, 60)
        begin(waiter)
        begun.set()
        waiter.rollback()
        waiter.close()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not begun.wait(0.1)
    holder.execute("COMMIT")
    thread.join(60)

    assert begun.is_set()


def test_values_whose_types_the_driver_is_told_of_are_bound_as_they_are(tmp_path):
    with opened(tmp_path, 1, name="types.sqlite3").cursor() as cursor:
        row = cursor.execute(
            "SELECT typeof(%s),typeof(%s),typeof(%s),%s", [None, b"\0salt", True, b"\0salt"]
        ).fetchone()

    assert row == ("null", "blob", "integer", b"\0salt")


@pytest.mark.slow
def test_all_connections_of_a_process_together_keep_few_pages_of_the_file(tmp_path):
    filling = sqlite3.connect(tmp_path / "large.sqlite3")
    filling.execute("CREATE TABLE large AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n LIMIT 10000)"
                    " SELECT x, hex(zeroblob(1500)) AS body FROM n")  # fmt: skip
    filling.commit()
    filling.close()
    options = databases.sqlite(tmp_path)["OPTIONS"]
    readers = []

    with peak() as needed:
        for _ in range(12):
            reader = opened(tmp_path, 1, name="large.sqlite3", init_command=options["init_command"])
            with reader.cursor() as cursor:
                assert cursor.execute("SELECT SUM(LENGTH(body)) FROM large").fetchone() == (30_000_000,)
            readers.append(reader)
    for reader in readers:
        reader.close()

    assert needed.mib < 96


def test_a_file_that_others_may_read_is_taken_from_them(tmp_path):
    with closing(sqlite3.connect(tmp_path / "open.sqlite3")) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("CREATE TABLE t(x)")
        files = sorted(tmp_path.glob("open.sqlite3*"))
        for file in files:
            file.chmod(0o644)

        with opened(tmp_path, 1, name="open.sqlite3").cursor() as cursor:
            cursor.execute("SELECT * FROM t")

        assert [(file.name, file.stat().st_mode & 0o777) for file in files] == [
            (f"open.sqlite3{end}", 0o600) for end in ("", "-shm", "-wal")
        ]
