"""A real server process for tests: its own data directory, its own port, stopped by its own id."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import http.client
import itertools
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import psycopg

from tests.support.forking import Forked, nursery

Database = Any  # a connection of sqlite3 or of psycopg: `execute(sql).fetchall()` of either
ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


def _ports() -> Iterator[int]:
    """Go through ports below those that the system gives to clients, each worker of a test run through its own."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw7").removeprefix("gw")) % 8
    ours = range(12_000 + worker * 2_500, 14_500 + worker * 2_500)
    yield from itertools.islice(itertools.cycle(ours), os.getpid() % len(ours), None)


_NEXT_PORT = _ports()
_ASKING = threading.Lock()


def free_port() -> int:
    """Return a port that nobody listens on now, and that nobody is given before a test has begun to."""
    while True:
        with _ASKING:
            port = next(_NEXT_PORT)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port


def until(condition: Callable[[], T], *, within: float = 60.0, what: str = "") -> T:
    """Wait until `condition()` is true and answer it; fail at the deadline, saying what was waited for."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within} s: {what or condition}")
        time.sleep(0.02)


def scratch(name: str) -> Path:
    """Make a folder that is removed when the run ends."""
    home = Path(tempfile.mkdtemp(prefix=f"switchboard-{name}-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return home


COLLECT = "from dashboard.management.commands.serve import Command; Command()._collect_static(is_alone=True)"
PREPARING = threading.Lock()


@cache
def _shared() -> Path:
    """Return a folder of this run: one for all processes of pytest, else of this one."""
    given = os.environ.get("SWITCHBOARD_TEST_SHARED")
    return Path(given) if given else scratch("shared")


def _prepare(home: Path) -> None:
    server = Server(home)
    server.command("migrate", "-v", "0")
    server.command("shell", "--no-imports", "-c", COLLECT)
    (home / "secret").unlink()


def prepared() -> Path:
    """Prepare a data directory, once a run for all its processes: the tables made, the static files collected, nothing
    else in it.
    """
    home, unfinished = _shared() / "prepared", _shared() / "unfinished"
    with PREPARING, (_shared() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            shutil.rmtree(unfinished, ignore_errors=True)  # of a process that failed
            _prepare(unfinished)
            unfinished.rename(home)
    return home


def on_postgresql(url: str) -> dict[str, str]:
    """Return the environment of a `Server` on this database."""
    return {"SWITCHBOARD_DATABASE_URL": url, "SWITCHBOARD_SECRET_KEY": "one secret for all processes of a test"}


class Server:
    """`manage.py serve` in its own process: forked with the libraries, begun on a copy of `prepared()`."""

    folder = ROOT  # where its commands run
    is_newcomer = False  # True: with an interpreter of its own and nothing prepared, as the first time on a machine

    def __init__(self, data_dir: Path | None = None, *arguments: str, **environment: str) -> None:
        self.data_dir = data_dir or scratch("live") / "data"
        self.port = free_port()
        self.arguments = arguments or ("--no-demo",)
        self.environment = environment
        self.log = self.data_dir.parent / f"{self.data_dir.name}.log"
        self.process: subprocess.Popen[bytes] | Forked | None = None

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    def env(self) -> dict[str, str]:
        """The environment of its commands: nothing of this test run's settings."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("SWITCHBOARD_", "DJANGO_"))}
        return environment | {"SWITCHBOARD_DATA_DIR": str(self.data_dir), "PYTHONUNBUFFERED": "1"} | self.environment

    def command_line(self, *arguments: str) -> list[str]:
        """Write a command as the shell would run it."""
        return [sys.executable, "manage.py", *arguments]

    def start(self) -> Server:
        """Start it and wait until it is ready; end it where that takes too long."""
        self.launch()
        try:
            until(self._is_ready, within=90, what="the server to be ready")
        except AssertionError:
            self.kill()
            raise
        return self

    def launch(self) -> None:
        """Start it, whatever becomes of it."""
        if not self.is_newcomer and not any(self.data_dir.glob("*")):
            shutil.copytree(prepared(), self.data_dir, dirs_exist_ok=True, ignore=self._not_its_own)
        self.process = self.spawn(["serve", "--port", str(self.port), *self.arguments], self.log, self.log)

    def spawn(
        self, arguments: Sequence[str], stdout: Path, stderr: Path, stdin: str = os.devnull
    ) -> subprocess.Popen[bytes] | Forked:
        """Run a command in a process of its own; what it prints is added to the files."""
        if not self.is_newcomer:
            return nursery(ROOT).fork(arguments, env=self.env(), stdout=stdout, stderr=stderr, stdin=stdin)
        with open(stdin) as given, stdout.open("a") as output, stderr.open("a") as wrong:
            command = self.command_line(*arguments)
            return subprocess.Popen(command, cwd=self.folder, env=self.env(), stdin=given, stdout=output, stderr=wrong)

    def _not_its_own(self, _: str, names: list[str]) -> list[str]:
        """Leave the file of tables where a server keeps them elsewhere."""
        return [name for name in names if "sqlite3" in name and "SWITCHBOARD_DATABASE_URL" in self.environment]

    def _is_ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.output()}")
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=60) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def output(self) -> str:
        """What it printed so far."""
        return self.log.read_text()

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def terminate(self) -> int:
        """Ask it to stop; return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def command(self, *arguments: str, stdin: str | None = None) -> str:
        """Run a command on its data directory; return what it printed."""
        with tempfile.TemporaryDirectory(prefix="switchboard-command-") as folder:
            given, output, wrong = (Path(folder) / name for name in ("stdin", "stdout", "stderr"))
            given.write_text(stdin or "")
            code = self.spawn(arguments, output, wrong, str(given)).wait(120)
            if code:
                raise AssertionError(f"{arguments} ended with {code}:\n{output.read_text()}\n{wrong.read_text()}")
            return output.read_text()

    def token(self, name: str = "publisher", role: str = "admin") -> str:
        """Make a bearer token."""
        return self.command("token", name, "--role", role).strip().splitlines()[-1]

    def publish(self, token: str, topic: str, payload: Any, bus_id: str | None = None) -> tuple[int, dict[str, Any]]:
        """Publish one message; answer status and body."""
        body = {"topic": topic, "payload": payload} | ({"id": bus_id} if bus_id else {})
        return self.request("POST", "/api/v1/publish", json.dumps(body).encode(), token)

    def request(self, method: str, path: str, body: bytes | None = None, token: str = "") -> tuple[int, dict[str, Any]]:
        """Make one HTTP request; answer status and JSON body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, (json.loads(text) if text.startswith((b"{", b"[")) else {})
        finally:
            connection.close()

    def database(self) -> Database:
        """Open its database for reading, for SELECTs that both kinds take."""
        if url := self.environment.get("SWITCHBOARD_DATABASE_URL"):
            return psycopg.connect(url, autocommit=True)
        return sqlite3.connect(f"file:{self.data_dir}/switchboard.sqlite3?mode=ro", uri=True)

    def rows(self, sql: str, *values: Sequence[object]) -> list[Any]:
        """Read its database by such a SELECT, with the values of its parameters if it has any."""
        with contextlib.closing(self.database()) as database:
            return list(database.execute(sql, *values).fetchall())

    def column(self, sql: str) -> list[Any]:
        """Read one column."""
        return [value for (value,) in self.rows(sql)]
