"""Commands as real processes that start in a hundredth of a second: forks of one process that has imported everything.

`Nursery` is the test's side. Run as a module this file is the other: it reads a JSON line a command from stdin, forks,
and tells on stdout who was born and who died, and how.
"""

from __future__ import annotations

import json
import os
import queue
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any

from tests.live import ROOT, until
from tests.services import PostgresServer


class Child:
    """One process of the nursery's."""

    def __init__(self, pid: int, log: Path) -> None:
        self.pid, self.log = pid, log
        self.returncode: int | None = None
        self.ended = threading.Event()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, stopped or not."""
        if self.returncode is None:
            self.signal(signal.SIGKILL)
            self.wait()

    def terminate(self, within: float = 10) -> int:
        """Ask it to stop; answer its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(within)

    def wait(self, within: float = 20) -> int:
        """Wait for its end; answer its exit code, a signal's as minus its number."""
        assert self.ended.wait(within), f"process {self.pid} did not end:\n{self.output()}"
        assert self.returncode is not None
        return self.returncode

    def output(self) -> str:
        """What it printed."""
        return self.log.read_text()


class Place:
    """A database of its own, and the Redis that is recorded into it."""

    def __init__(self, home: Path, redis_url: str = "", database_url: str = "") -> None:
        self.home, self.redis_url, self.database_url = home, redis_url, database_url

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask the database; nothing as long as there are no tables."""
        if self.database_url:
            return self._rows_of_postgres(sql)
        path = self.home / "switchboard.sqlite3"
        if not path.exists():
            return []
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()

    def _rows_of_postgres(self, sql: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(sql).fetchall()

    def value(self, sql: str) -> Any:
        """Answer the one value of the one row."""
        return self.rows(sql)[0][0]

    def events(self, conversation: str = "") -> list[tuple[str, int, str, str, dict[str, Any]]]:
        """Answer every event: conversation, seq, kind, principal, body."""
        where = f"WHERE c.key='{conversation}'" if conversation else ""
        found = self.rows(
            "SELECT c.key,e.seq,e.kind,e.principal,e.body FROM conversations_event e"
            f" JOIN conversations_conversation c ON c.id=e.conversation_id {where} ORDER BY e.id"
        )
        return [(key, seq, kind, principal, json.loads(body)) for key, seq, kind, principal, body in found]

    def gaps(self) -> list[dict[str, Any]]:
        """Answer what the record says is missing."""
        return [body for *_, kind, _, body in self.events() if kind == "record.gap"]


class Nursery:
    """Starts commands of `manage.py`, on SQLite or in databases of a PostgreSQL server."""

    def __init__(self, server: PostgresServer | None = None) -> None:
        self.server = server
        self.home = Path(tempfile.mkdtemp(prefix="switchboard-nursery-"))
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SWITCHBOARD_", "DJANGO_"))}
        environment = kept | {"SWITCHBOARD_DATA_DIR": str(self.home / "mother"), "PYTHONUNBUFFERED": "1"}
        if server is not None:
            environment |= {"SWITCHBOARD_DATABASE_URL": server.url, "SWITCHBOARD_SECRET_KEY": "of these tests" * 4}
        self._mother = subprocess.Popen(
            [sys.executable, "-m", "tests.nursery"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._children: dict[int, Child] = {}
        self._born: queue.Queue[int] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        self._places = 0
        self._template: Place | None = None

    def place(self, redis_url: str = "") -> Place:
        """Make a new place with empty tables."""
        if self._template is None:
            self._template = self._bare("template")
            self.run(self._template, "migrate", "--verbosity=0")
        self._places += 1
        place = self._bare(f"place_{self._places}", like=self._template)
        place.redis_url = redis_url
        return place

    def _bare(self, name: str, like: Place | None = None) -> Place:
        home = self.home / name
        if self.server is not None:
            home.mkdir()
            return Place(home, database_url=self.server.create(name, template="template" if like else ""))
        if like is None:
            home.mkdir()
        else:
            shutil.copytree(like.home, home)
        return Place(home)

    def start(self, place: Place, *command: str, failpoint: str = "", **environment: str) -> Child:
        """Start a command there."""
        log = place.home / "log"
        asked = {"command": command, "home": str(place.home), "redis_url": place.redis_url, "log": str(log)}
        asked |= {"database_url": place.database_url, "failpoint": failpoint, "environment": environment}
        assert self._mother.stdin is not None
        self._mother.stdin.write(json.dumps(asked) + "\n")
        self._mother.stdin.flush()
        until(lambda: not self._born.empty() or self._mother.poll() is not None, within=30, what="a child to be born")
        return self._children[self._born.get_nowait()]

    def run(self, place: Place, *command: str) -> None:
        """Run a command to its good end."""
        child = self.start(place, *command)
        assert child.wait(60) == 0, child.output()

    def record(self, place: Place, *arguments: str, failpoint: str = "", **environment: str) -> Child:
        """Start a recorder there."""
        return self.start(place, "record", *arguments, failpoint=failpoint, **environment)

    def clear(self, place: Place) -> None:
        """End what still runs there, and remove it."""
        for child in list(self._children.values()):
            if child.log.parent == place.home:
                child.kill()
        shutil.rmtree(place.home, ignore_errors=True)

    def close(self) -> None:
        """End every child that still lives, then the mother."""
        for child in list(self._children.values()):
            child.kill()
        assert self._mother.stdin is not None
        self._mother.stdin.close()
        self._mother.wait(10)
        self._listener.join(10)
        assert self._mother.stdout is not None
        self._mother.stdout.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def _listen(self) -> None:
        assert self._mother.stdout is not None
        for line in self._mother.stdout:
            told = json.loads(line)
            if "log" in told:
                self._children[told["pid"]] = Child(told["pid"], Path(told["log"]))
                self._born.put(told["pid"])
            else:
                child = self._children[told["pid"]]
                child.returncode = told["returncode"]
                child.ended.set()


def _mother() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django

    django.setup()
    import conversations.chains
    import conversations.management.commands.record  # noqa: F401  # children find it imported

    alive = 0
    while True:
        ready, _, _ = select.select([sys.stdin], [], [], 0.005 if alive else 1.0)
        if ready:
            line = sys.stdin.readline()
            if not line:
                return
            asked = json.loads(line)
            pid = os.fork()
            if pid == 0:
                _child(asked)
            alive += 1
            print(json.dumps({"pid": pid, "log": asked["log"]}), flush=True)  # noqa: T201  # it is the protocol
        while alive:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            alive -= 1
            print(json.dumps({"pid": pid, "returncode": os.waitstatus_to_exitcode(status)}), flush=True)  # noqa: T201


def _child(asked: dict[str, Any]) -> None:
    """Become the command: what settings and failpoints read of the environment is set as if it had been there."""
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(0)
    code = 1
    try:
        os.environ |= asked["environment"]
        _settle(asked)
        from django.core.management import CommandError, call_command

        try:
            if asked["command"][0] == "publish":
                _publish(json.loads(asked["command"][1]))
            else:
                call_command(*asked["command"])
            code = 0
        except CommandError as error:
            print(f"CommandError: {error}", flush=True)  # noqa: T201  # into its log
        except SystemExit as end:
            code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _publish(messages: list[list[Any]]) -> None:
    """Publish as our own processes do: topic, payload, bus id."""
    from conversations import envelopes, log, principals

    for topic, payload, bus_id in messages:
        body = json.dumps(payload, separators=(",", ":"))
        log.append([log.of_payload(topic, bus_id, body, envelopes.read(body.encode()), principals.SYSTEM)])


def _settle(asked: dict[str, Any]) -> None:
    from django.conf import settings
    from django.db import connections

    from conversations import failpoints

    home = Path(asked["home"])
    settings.DATA_DIR = home
    settings.CONFIG = settings.CONFIG.model_copy(
        update={"data_dir": home, "redis_url": asked["redis_url"], "database_url": asked["database_url"]}
    )
    name = asked["database_url"].rpartition("/")[2] or home / "switchboard.sqlite3"
    connections.settings["default"]["NAME"] = connections["default"].settings_dict["NAME"] = name
    failpoints._NAME, _, failpoints._ARGUMENT = asked["failpoint"].partition(":")


def ended(child: Child, within: float = 20) -> int:
    """Wait until a process has ended by itself."""
    until(child.ended.is_set, within=within, what=f"the end of {child.pid}:\n{child.output()[-2000:]}")
    return child.wait()


if __name__ == "__main__":
    _mother()
