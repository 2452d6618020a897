"""Commands as real processes that start in a hundredth of a second: forks of one process that has imported everything.

`Nursery` is the test's side. Run as a module this file is the other: a `Forker` that has read its settings already.
What a process reads of them is set anew in each fork, as if its environment had been there from the start.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from conversations.core.json_values import whole_of
from tests.support import forking
from tests.support.forking import Forked
from tests.support.live import ROOT, until
from tests.support.services import PostgresServer


class Child:
    """One process of the nursery's, and what it printed."""

    def __init__(self, process: Forked, log: Path) -> None:
        self._process, self.log = process, log
        self.pid, self.ended = process.pid, process.ended

    @property
    def returncode(self) -> int | None:
        """Its exit code, a signal's as minus its number; None while it lives."""
        return self._process.returncode

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, stopped or not."""
        self.signal(signal.SIGKILL)
        self.wait()

    def terminate(self, within: float = 10) -> int:
        """Ask it to stop; return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(within)

    def wait(self, within: float = 20) -> int:
        """Wait for its end; return its exit code, a signal's as minus its number."""
        assert self.ended.wait(within), f"process {self.pid} did not end:\n{self.output()}"
        assert self.returncode is not None
        return self.returncode

    def output(self) -> str:
        """What it printed."""
        return self.log.read_text() if self.log.exists() else ""


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
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()

    def _rows_of_postgres(self, sql: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.database_url, autocommit=True) as connection:
            return connection.execute(sql).fetchall()

    def value(self, sql: str) -> Any:
        """Return the one value of the one row."""
        return self.rows(sql)[0][0]

    def events(self, conversation: str = "") -> list[tuple[str, int, str, str, dict[str, Any]]]:
        """Return every event: conversation, seq, kind, principal, body."""
        where = f"WHERE c.key='{conversation}'" if conversation else ""
        rows = self.rows(
            "SELECT c.key,e.seq,e.kind,e.principal,e.body FROM conversations_event e"
            f" JOIN conversations_conversation c ON c.id=e.conversation_id {where} ORDER BY e.id"
        )
        return [
            (key, seq, kind, principal, json.loads(body, parse_int=whole_of))
            for key, seq, kind, principal, body in rows
        ]

    def gaps(self) -> list[dict[str, Any]]:
        """Return what the record says is missing."""
        return [body for *_, kind, _, body in self.events() if kind == "record.gap"]


class Nursery:
    """Starts commands of `manage.py`, on SQLite or in databases of a PostgreSQL server."""

    def __init__(self, server: PostgresServer | None = None) -> None:
        self.server = server
        self.home = Path(tempfile.mkdtemp(prefix="switchboard-nursery-"))
        clean_environment = {k: v for k, v in os.environ.items() if not k.startswith(("SWITCHBOARD_", "DJANGO_"))}
        environment = clean_environment | {"SWITCHBOARD_DATA_DIR": str(self.home / "mother"), "PYTHONUNBUFFERED": "1"}
        if server is not None:
            environment |= {"SWITCHBOARD_DATABASE_URL": server.url, "SWITCHBOARD_SECRET_KEY": "of these tests" * 4}
        self._mother = forking.Nursery(ROOT, "tests.support.nursery", env=environment)
        self._children: list[Child] = []
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
        job = {"command": command, "home": str(place.home), "redis_url": place.redis_url, "log": str(log)}
        job |= {"database_url": place.database_url, "failpoint": failpoint, "environment": environment}
        child = Child(self._mother.ask(job), log)
        self._children.append(child)
        return child

    def run(self, place: Place, *command: str) -> None:
        """Run a command to its good end."""
        child = self.start(place, *command)
        assert child.wait(60) == 0, child.output()

    def record(self, place: Place, *arguments: str, failpoint: str = "", **environment: str) -> Child:
        """Start a recorder there."""
        return self.start(place, "record", *arguments, failpoint=failpoint, **environment)

    def clear(self, place: Place) -> None:
        """End what still runs there, and remove it."""
        for child in self._children:
            if child.log.parent == place.home:
                child.kill()
        self._children = [child for child in self._children if child.log.parent != place.home]
        shutil.rmtree(place.home, ignore_errors=True)

    def close(self) -> None:
        """End every child that still lives, then the mother."""
        self._mother.close()
        shutil.rmtree(self.home, ignore_errors=True)


def _mother() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "dashboard.settings"
    import django

    django.setup()
    import conversations.events.verify_chains
    import conversations.management.commands.record  # noqa: F401  # children find these imported
    import tests.support.deciding  # noqa: F401

    job = forking.Forker(sys.argv[1]).job()
    if job is not None:
        _child(job)


def _child(job: dict[str, Any]) -> None:
    """Become the command: what settings and failpoints read of the environment is set as if it had been there."""
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.close(0)
    code = 1
    try:
        os.environ |= job["environment"]
        _settle(job)
        from django.core.management import CommandError, call_command

        try:
            if job["command"][0] == "publish":
                _publish(json.loads(job["command"][1]))
            elif job["command"][0] == "take-part":
                from tests.support.deciding import take_part

                take_part(job["command"][1])
            else:
                call_command(*job["command"])
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
    from conversations.events import log
    from conversations.transport import relay_start
    from tests.support.unchecked import from_text

    relay_start.ensure_start()  # as they do when they start
    for topic, payload, bus_id in messages:
        log.append([from_text(topic, json.dumps(payload, separators=(",", ":")), bus_id=bus_id)])


def _settle(job: dict[str, Any]) -> None:
    from django.conf import settings
    from django.db import connections

    from conversations.core import failpoints

    home = Path(job["home"])
    settings.DATA_DIR = home
    settings.CONFIG = settings.CONFIG.model_copy(
        update={"data_dir": home, "redis_url": job["redis_url"], "database_url": job["database_url"]}
        | ({"teams": job["environment"]["SWITCHBOARD_TEAMS"]} if "SWITCHBOARD_TEAMS" in job["environment"] else {})
    )
    name = job["database_url"].rpartition("/")[2] or home / "switchboard.sqlite3"
    connections.settings["default"]["NAME"] = connections["default"].settings_dict["NAME"] = name
    failpoints._NAME, _, failpoints._ARGUMENT = job["failpoint"].partition(":")


def ended(child: Child, within: float = 20) -> int:
    """Wait until a process has ended by itself."""
    until(child.ended.is_set, within=within, what=f"the end of {child.pid}:\n{child.output()[-2000:]}")
    return child.wait()


if __name__ == "__main__":
    _mother()
