"""A page is drawn at once while somebody else writes, or nobody can: the note of a person's visit, or of a token's use,
waits for nobody."""

import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from django.db import connection

from conversations.access.accounts import tokens
from conversations.conversation import visits
from conversations.core.principals import SYSTEM
from conversations.events import epoch
from conversations.models import Token, User, Visit
from tests.dashboard.test_headers import every_page
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3_600_000_000
HELD = 60.0  # seconds, if a page waits for it
write_transaction = sys.modules["conversations.core.write_transaction"]


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> User:
    """Somebody who was here an hour ago; who waits for a lock waits until it is let go."""
    monkeypatch.setattr(write_transaction, "PATIENCE", 100.0)
    epoch.current()  # made when a server starts
    reader = person("ada", "admin")
    Visit.objects.create(user=reader, last_at=time.time_ns() // 1000 - HOUR)
    return reader


@contextmanager
def until_waited_for(let_go: threading.Event) -> Iterator[threading.Event]:
    """Let go after `HELD`, for who waits, and say whether anybody did."""
    waited = threading.Event()

    def free() -> None:
        waited.set()
        let_go.set()

    timer = threading.Timer(HELD, free)
    timer.start()
    yield waited
    timer.cancel()


@contextmanager
def file_held() -> Iterator[threading.Event]:
    """Hold what a writer of another process does, and tell when somebody has waited for it: the file, or the row."""
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        if connection.vendor == "postgresql":
            with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
                other.execute("SELECT * FROM conversations_visit FOR UPDATE")
                other.execute("SELECT * FROM conversations_token FOR UPDATE")
                held.set()
                let_go.wait()
            return
        other_file = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, uri=True)
        other_file.execute("BEGIN IMMEDIATE")
        held.set()
        let_go.wait()
        other_file.close()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with until_waited_for(let_go) as waited:
        yield waited
    let_go.set()
    thread.join()


@contextmanager
def write_lock_held() -> Iterator[threading.Event]:
    """Hold what a writer of this process does."""
    let_go, lock = threading.Event(), write_transaction._write_lock

    def hold() -> None:
        let_go.wait()
        lock.release()

    assert lock.acquire(0)
    thread = threading.Thread(target=hold)
    thread.start()
    with until_waited_for(let_go) as waited:
        yield waited
    let_go.set()
    thread.join()


HOLDERS = [file_held, pytest.param(write_lock_held, marks=pytest.mark.sqlite("PostgreSQL has no turn"))]


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_page_waits_for_no_writer(holder, reader):
    browser = client_of(reader)

    with holder() as waited:
        answer = browser.get("/")
        was_at_once = not waited.is_set()

    assert (answer.status_code, was_at_once) == (200, True)
    assert visits.note(reader.pk) != 0, "what could not be written is noted by the next page, with when they left"
    assert Visit.objects.get().left_at != 0


@pytest.mark.slow
@pytest.mark.parametrize("holder", HOLDERS)
def test_no_page_waits_for_a_writer(holder, reader):
    browser, waiting = client_of(reader), []

    for page in every_page():
        with holder() as waited:
            browser.get(page)
            waiting += [page] if waited.is_set() else []

    assert waiting == []


@contextmanager
def nothing_writable() -> Iterator[threading.Event]:
    """Refuse every write, as a full disk does, and a standby."""
    refuse, allow = (
        ("PRAGMA query_only=ON", "PRAGMA query_only=OFF")
        if connection.vendor == "sqlite"
        else ("SET default_transaction_read_only=on", "RESET default_transaction_read_only")
    )
    with connection.cursor() as cursor:
        cursor.execute(refuse)
        yield threading.Event()
        cursor.execute(allow)


@pytest.mark.parametrize("path", ["/api/v1/conversations", "/"])
@pytest.mark.parametrize("holder", [*HOLDERS, nothing_writable])
def test_no_program_waits_for_the_note_of_its_token(holder, path, reader):
    secret, browser = tokens.make_token(SYSTEM, "monitor", "viewer"), client_of()

    with holder() as waited:
        answer = browser.get(path, headers={"Authorization": f"Bearer {secret}"})
        was_at_once = not waited.is_set()

    assert (answer.status_code, was_at_once) == (200, True)
    assert Token.objects.get().last_used_at is None
    assert browser.get(path, headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert Token.objects.get().last_used_at is not None, "what could not be written is noted by the next request"
