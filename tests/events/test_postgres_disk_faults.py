"""A PostgreSQL without room on its disk, or one that takes no more writes, under a running server: nothing is
acknowledged that is not stored, nothing is half done, readers go on, and all does by itself once there is room."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from tests.events.test_crash import Ledger, judge
from tests.events.test_disk_faults import pause, publish
from tests.support.live import Server, on_postgresql, scratch, until
from tests.support.services import PostgresServer


class Fault:
    """What keeps a database from being written to."""

    message = ""  # what callers read of it

    def __init__(self, cluster: PostgresServer, url: str) -> None:
        self.cluster, self.url = cluster, url

    def begin(self) -> None:
        """Let it happen."""

    def end(self) -> None:
        """Mend it."""


class ReadOnly(Fault):
    """It takes reads alone: as a standby that took over its address does, or an operator who saves what is left."""

    message = "read-only transaction"

    def begin(self) -> None:
        self._set("SET default_transaction_read_only=on")

    def end(self) -> None:
        self._set("RESET default_transaction_read_only")

    def _set(self, setting: str) -> None:
        with psycopg.connect(self.cluster.url, autocommit=True) as database:
            database.execute("SET default_transaction_read_only=off")
            database.execute(f"ALTER SYSTEM {setting}")
            database.execute("SELECT pg_reload_conf()")


class FullDisk(Fault):
    """The disk of its tables is full; its log has another one."""

    message = "No space left on device"

    def __init__(self, cluster: PostgresServer, url: str, disk: Path) -> None:
        super().__init__(cluster, url)
        self._other = disk / "other"

    def begin(self) -> None:
        with self._other.open("wb", buffering=0) as other, suppress(OSError):
            while other.write(bytes(4096)):
                pass

    def end(self) -> None:
        self._other.unlink()


@contextmanager
def small_disk(cluster: PostgresServer) -> Iterator[Path]:
    """Mount 64 MiB that PostgreSQL may write to."""
    disk = scratch("postgres-disk") / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("only root may mount a disk")
    try:
        os.chmod(disk.parent, 0o755)
        space = disk / "space"
        space.mkdir()
        shutil.chown(space, cluster.user)
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.fixture(params=["read-only", "full disk"])
def fault(request: pytest.FixtureRequest, cluster: PostgresServer) -> Iterator[Fault]:
    if request.param == "read-only":
        made = ReadOnly(cluster, cluster.create("read_only"))
        yield made
        made.end()
        return
    with small_disk(cluster) as disk:
        with psycopg.connect(cluster.url, autocommit=True) as database:
            database.execute(f"CREATE TABLESPACE small LOCATION '{disk / 'space'}'")
            database.execute("CREATE DATABASE cramped TABLESPACE small")
        yield FullDisk(cluster, cluster.url_of("cramped"), disk)
        with psycopg.connect(cluster.url, autocommit=True) as database:
            database.execute("DROP DATABASE cramped WITH (FORCE)")
            database.execute("DROP TABLESPACE small")


@pytest.fixture
def server(tmp_path: Path, fault: Fault) -> Iterator[Server]:
    made = Server(tmp_path / "data", **on_postgresql(fault.url))
    yield made.start()
    made.kill()


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    made = Ledger(tmp_path / "ledger")
    yield made
    made.file.close()


@pytest.mark.thorough
def test_a_database_that_cannot_be_written_to_is_told_and_all_goes_on_once_it_can(
    server: Server, fault: Fault, ledger: Ledger
) -> None:
    secret = server.token()
    for _ in range(20):
        assert publish(server, secret, ledger)[0] == 201

    fault.begin()
    status, headers, body = until(
        lambda: (answer := publish(server, secret, ledger))[0] != 201 and answer, what="the fault to be met"
    )
    ready = until(lambda: (answer := server.request("GET", "/readyz"))[0] == 503 and answer[1], what="it to be told")
    readable = server.request("GET", "/api/v1/conversations/c", token=secret)
    refused = [publish(server, secret, ledger) for _ in range(5)]
    steered = pause(server, secret)
    fault.end()
    until(lambda: server.request("GET", "/readyz")[0] == 200, what="the server to be ready again")
    again = until(lambda: (answer := publish(server, secret, ledger))[0] == 201 and answer, what="publishing")
    paused = pause(server, secret)

    assert (status, headers["retry-after"], body["error"]["code"]) == (503, "1", "unavailable")
    assert "cannot write right now" in body["error"]["message"]
    assert fault.message in body["error"]["message"]
    assert "writer" in ready["not_ready"]
    assert (readable[0], readable[1]["messages"]) == (200, len(ledger.read()) - 1)
    assert {answer[0] for answer in refused} == {503}
    assert (steered[0], steered[2]["error"]["code"]) == (503, "unavailable")
    assert (again[0], paused[0]) == (201, 200)
    server.terminate()
    assert judge(server, ledger) == len(ledger.read()) > 20
    server.command("verify")
