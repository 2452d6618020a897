"""A damaged database file, a full disk, a data directory that is none: a plain sentence from every command, 503 from a
server, and never a traceback."""

import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest
from django.db import DatabaseError
from django.test import Client

from conversations.conversation import list_query
from conversations.core.db_threads import unavailable, with_connection
from conversations.core.errors import Unavailable
from conversations.events.log.commit_batch import is_of_database
from conversations.rendering import agent_colors
from conversations.transport.recorder import store
from tests.support.live import Server, prepared, scratch
from tests.support.tiers import variants

FILL = """
from conversations.events import log
from tests.support.unchecked import unchecked
for key in ("a", "b"):
    for n in range(150):
        log.append([unchecked(key, {"event": "log", "n": n, "text": f"{n} " * 600})])
"""


@cache
def record() -> tuple[Path, str]:
    """Make a data directory with 300 events of 2 KiB, once a run; return it and a token of an administrator."""
    server = Server(scratch("damaged") / "data")
    shutil.copytree(prepared(), server.data_dir)
    server.command("shell", "--no-imports", "-c", FILL)
    secret = server.token()
    with closing(sqlite3.connect(file_of(server))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return server.data_dir, secret


def file_of(server: Server) -> Path:
    return server.data_dir / "switchboard.sqlite3"


def root_page(server: Server, name: str) -> tuple[int, int]:
    """Return where a table's or an index's first page begins and how large a page is, in bytes."""
    with closing(sqlite3.connect(file_of(server))) as database:
        (size,) = database.execute("PRAGMA page_size").fetchone()
        (page,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name=?", [name]).fetchone()
    return (page - 1) * size, size


def overwrite(server: Server, at: int, data: bytes) -> None:
    with file_of(server).open("r+b") as file:
        file.seek(at)
        file.write(data)


def damage_header(server: Server) -> None:
    overwrite(server, 0, bytes(100))


def damage_schema(server: Server) -> None:
    overwrite(server, 100, b"\xff" * 20)


def damage_newest_events(server: Server) -> None:
    at, size = root_page(server, "conversations_event")
    content = file_of(server).read_bytes()
    while content[at] == 5:  # of an inner page of a table: its right-most child is in bytes 8 to 12
        at = (int.from_bytes(content[at + 8 : at + 12], "big") - 1) * size
    overwrite(server, at, b"\xff" * 200)


def damage_index(server: Server) -> None:
    at, _ = root_page(server, "conversation_newest")
    overwrite(server, at, b"\xff" * 200)


def truncate(server: Server) -> None:
    with file_of(server).open("r+b") as file:
        file.truncate(file_of(server).stat().st_size // 2)


DAMAGES = [truncate, damage_header, damage_schema, damage_newest_events, damage_index]
COMMANDS = ["rebuild", "token robot --role agent", "export a", "serve --no-demo --port 9"]


def copy() -> Server:
    """Copy the record for one test."""
    server = Server(scratch("damaged") / "data")
    shutil.copytree(record()[0], server.data_dir)
    return server


def run(server: Server, line: str) -> tuple[int, str]:
    """Run a command; return its exit code and all that it printed."""
    output_file = scratch("said") / "said"
    code = server.spawn(line.split(), output_file, output_file).wait(60)
    return code, output_file.read_text()


def test_record_for_these_tests_is_whole() -> None:
    code, output = run(copy(), "verify")

    assert (code, "300 events are intact" in output) == (0, True), output


@pytest.mark.parametrize("damage", variants(DAMAGES), ids=lambda damage: damage.__name__)
def test_verify_names_damaged_file_and_what_to_do(damage) -> None:
    server = copy()
    damage(server)

    code, output = run(server, "verify")

    assert code == 1
    assert "Traceback" not in output
    assert f"{file_of(server)} is damaged" in output
    assert "restore a backup" in output
    assert "are intact" not in output


@pytest.mark.slow
def test_verify_names_table_whose_pages_are_damaged() -> None:
    server = copy()
    damage_newest_events(server)
    assert "conversations_event" in run(server, "verify")[1]

    server = copy()
    damage_index(server)
    assert "conversations_conversation" in run(server, "verify")[1]


@pytest.mark.parametrize("line", variants(COMMANDS, quick=2), ids=lambda line: line.split()[0])
def test_command_on_damaged_file_ends_with_a_sentence(line) -> None:
    server = copy()
    damage_header(server)

    code, output = run(server, line)

    assert code == 1
    assert "Traceback" not in output
    assert f"{file_of(server)} is damaged" in output


@pytest.mark.parametrize("line", ["verify", "serve --port 9"])
def test_data_directory_that_is_a_file_is_named(line) -> None:
    server = Server(scratch("damaged") / "data")
    server.is_newcomer = True  # a forked one reads its settings before `manage.py` begins
    server.data_dir.write_text("not a directory")

    code, output = run(server, line)

    assert code == 1
    assert "Traceback" not in output
    assert f"{server.data_dir}" in output
    assert "SWITCHBOARD_DATA_DIR" in output


def test_database_that_is_a_directory_is_named() -> None:
    server = copy()
    file_of(server).unlink()
    file_of(server).mkdir()

    code, output = run(server, "verify")

    assert code == 1
    assert "Traceback" not in output
    assert f"{file_of(server)}" in output


@pytest.mark.slow
@pytest.mark.parametrize("blocks", variants([64, 0]), ids=lambda blocks: f"{blocks} blocks")
@pytest.mark.parametrize("line", ["verify", "serve --no-demo --port 9"])
def test_full_disk_at_first_start_is_told_in_a_sentence(line, blocks) -> None:
    server = Server(scratch("damaged") / "data")
    done = subprocess.run(
        server.command_line(*line.split()),
        cwd=server.folder,
        env=server.env(),
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (blocks * 1024, blocks * 1024)),
    )

    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert str(server.data_dir) in done.stderr
    assert "free disk space" in done.stderr.lower()


def test_server_that_meets_damage_as_it_starts_ends_with_a_sentence() -> None:
    server = copy()
    damage_newest_events(server)

    code, output = run(server, f"serve --no-demo --port {server.port}")

    assert code == 1
    assert "Traceback" not in output
    assert f"{file_of(server)} is damaged" in output


@pytest.fixture(scope="module")
def damage_met() -> DatabaseError:
    """What Django raises where SQLite meets a damaged page, with the real error as its cause."""
    server = copy()
    damage_newest_events(server)
    with closing(sqlite3.connect(file_of(server))) as database, pytest.raises(sqlite3.DatabaseError) as met:
        database.execute("SELECT sum(length(body)) FROM conversations_event").fetchall()
    error = DatabaseError(str(met.value))
    error.__cause__ = met.value
    return error


def raiser(error: Exception) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise error

    return fail


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/", "/api/v1/conversations"])
@pytest.mark.parametrize(("place", "name"), variants([(list_query, "find"), (agent_colors, "refresh_colors")]))
def test_page_that_meets_damage_answers_503_with_what_to_do(team, damage_met, monkeypatch, path, place, name) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(team["viewer"])
    monkeypatch.setattr(place, name, raiser(damage_met))

    answer = client.get(path)

    assert answer.status_code == 503
    assert "database is damaged" in answer.content.decode()
    assert "switchboard verify" in answer.content.decode()


@pytest.mark.thorough
@pytest.mark.django_db
def test_damage_is_the_databases_fault_and_no_events(damage_met) -> None:
    with pytest.raises(Unavailable, match="the database is damaged"):
        with_connection(raiser(damage_met))

    assert is_of_database(damage_met)
    assert store._is_passing(damage_met)
    assert "the database is damaged" in str(unavailable(damage_met, what="write"))
