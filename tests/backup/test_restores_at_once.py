"""A restore into an empty PostgreSQL database, to which somebody else writes at the same time."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from conversations.core.schema_state import LOCK
from tests.support.live import until

WAITING = "SELECT count(*) FROM pg_locks WHERE locktype=%s AND NOT granted"


@pytest.mark.slow
def test_the_second_of_two_restores_at_once_leaves_what_the_first_has_restored(filled, place, tmp_path):
    server, other, file = filled(place("sqlite"), 5), place("postgresql"), tmp_path / "record.backup"
    server.command("backup", str(file))

    def restored():
        try:
            return other.command("restore", str(file))
        except AssertionError as refused:
            return str(refused)

    with ThreadPoolExecutor(2) as pool, psycopg.connect(other.environment["SWITCHBOARD_DATABASE_URL"]) as gate:
        gate.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        both = [pool.submit(restored) for _ in range(2)]
        until(
            lambda: gate.execute(WAITING, ["advisory"]).fetchone() == (2,),
            within=60,
            what="both to have looked and to wait",
        )
        gate.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
        ends = sorted((each.result() for each in both), key=lambda output: "already a record" in output)

    assert ends[0].startswith("Restored 3 conversations with 5 events")
    assert "there is already a record here" in ends[1]


@pytest.mark.slow
def test_a_restore_waits_for_who_writes_at_that_moment_before_it_takes_the_place_for_empty(filled, place, tmp_path):
    server, other, file = filled(place("sqlite"), 5), place("postgresql"), tmp_path / "record.backup"
    server.command("backup", str(file))
    other.command("migrate", "-v0")

    with ThreadPoolExecutor(1) as pool, psycopg.connect(other.environment["SWITCHBOARD_DATABASE_URL"]) as writer:
        writer.execute("LOCK TABLE conversations_token IN ROW EXCLUSIVE MODE")  # as who inserts one
        restoring = pool.submit(other.command, "restore", str(file))
        until(
            lambda: restoring.done() or writer.execute(WAITING, ["relation"]).fetchone() == (1,), within=60,
            what="the restore to wait",
        )  # fmt: skip
        is_waiting = not restoring.done()
        writer.commit()

    assert is_waiting
    assert restoring.result().startswith("Restored 3 conversations with 5 events")
