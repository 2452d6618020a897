"""Hooks and the feed of events on PostgreSQL, where transactions end in any order."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.asgi.test_event_feed import following, publish
from tests.asgi.test_hook_questions import Asking, pending
from tests.asgi.test_hooks import CLAUDE, call, hook
from tests.support.doors import Caller, encode, make_tokens
from tests.support.live import Server, on_postgresql
from tests.support.services import PostgresServer, running

pytestmark = pytest.mark.thorough
QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
COPY = """INSERT INTO conversations_event (conversation_id,seq,kind,at,principal,event_id,body,salt,digest,hash)
SELECT conversation_id,seq+1,kind,at,principal,'late',body,salt,digest,hash FROM conversations_event e
WHERE event_id=%s RETURNING id"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A database on a server of its own."""
    with running(PostgresServer(*(word for option in QUICK for word in ("-c", option)))) as cluster:
        assert isinstance(cluster, PostgresServer)
        yield cluster.create("doors")


@pytest.fixture(scope="module")
def callers(address: str) -> Iterator[dict[str, Caller]]:
    """The tokens of a server on it."""
    server = Server(None, "--no-demo", SWITCHBOARD_TEAMS="", **on_postgresql(address)).start()
    yield make_tokens(server, desk="Desk")
    server.terminate()
    assert "Traceback" not in server.output(), server.output()[-3000:]


def kinds(address: str, key: str) -> list[str]:
    """Read a conversation's kinds of events."""
    sql = (
        "SELECT e.kind FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id"
        " WHERE c.key=%s ORDER BY e.seq"
    )
    with psycopg.connect(address) as database:
        return [kind for (kind,) in database.execute(sql, [key]).fetchall()]


def test_row_that_is_committed_late_is_told_in_its_place(address: str, callers: dict[str, Caller]) -> None:
    """A transaction takes a row and stays open; what others commit behind it is not told before it."""
    admin = callers["admin"]
    publish(admin, "pg-late", 1)
    publish(admin, "pg-early", 1)
    place = admin.get("/api/v1/events?after=0").body["cursor"]

    with following(admin, f"?after={place}") as follower, psycopg.connect(address) as other:
        source = "SELECT e.event_id FROM conversations_event e ORDER BY id LIMIT 1"
        (event_id,) = other.execute(source).fetchone() or ("",)
        (late,) = other.execute(COPY, [event_id]).fetchone() or (0,)
        publish(admin, "pg-early", 2)
        publish(admin, "pg-early", 3)
        pages = admin  # a page waits for it as well
        page: list[list[int]] = []
        reading = threading.Thread(
            target=lambda: page.append(
                [item["id"] for item in pages.get(f"/api/v1/events?after={place}").body["items"]]
            )
        )
        reading.start()
        other.commit()
        events = [follower.next()[1] for _ in range(3)]
        reading.join(60)

    assert [event["id"] for event in events] == sorted(event["id"] for event in events)
    assert events[0]["id"] == late
    assert [event["conversation_id"] for event in events] == ["pg-late", "pg-early", "pg-early"]
    assert page == [[event["id"] for event in events]]


def test_session_and_its_question_by_hooks(address: str, callers: dict[str, Caller]) -> None:
    agent, key = callers["desk"], "claude-code-pg-session"
    start = hook("pg-session", "SessionStart", source="startup")
    for body in (start, start, call("pg-session", "PreToolUse"), call("pg-session", "PreToolUse")):
        assert agent.ask("POST", CLAUDE, body).status == 200
    asking = Asking(agent, "pg-session")
    question = pending(callers["approver"], key)
    path = f"/api/v1/approvals/{question['approval_id']}/decision"
    answers = list[int]()

    def decide(decision: str) -> None:
        answers.append(callers["approver"].ask("POST", path, encode({"decision": decision})).status)

    deciders = [
        threading.Thread(target=decide, args=(decision,)) for decision in ("approve", "reject", "approve", "reject")
    ]
    for thread in deciders:
        thread.start()
    for thread in deciders:
        thread.join(60)

    assert sorted(answers) == [200, 409, 409, 409]
    assert asking.wait_for_answer().body["hookSpecificOutput"]["decision"]["behavior"] in ("allow", "deny")
    assert kinds(address, key)[:2] == ["control", "tool_step"]
    assert kinds(address, key).count("approval.requested") == kinds(address, key).count("approval.decided") == 1


def test_hook_without_ids_that_comes_twice_at_once_is_one(address: str, callers: dict[str, Caller]) -> None:
    for number in range(10):
        body = hook("pg-twice", "UserPromptSubmit", prompt=f"number {number}")
        both = [threading.Thread(target=callers["desk"].ask, args=("POST", CLAUDE, body)) for _ in range(2)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join(60)

    assert kinds(address, "claude-code-pg-twice") == ["message"] * 10
