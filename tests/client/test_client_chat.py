"""`chat_send` and its core (§3.3), over memory, the record, a real server and a real Redis; `get_bus`."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection

import switchboard
from conversations.core import principals
from conversations.events import log
from conversations.transport.log_bus import LogBus
from switchboard import HttpBus, InMemoryBus, NotConfigured, RedisBus, Refused, chat_send, get_bus, send_message
from tests.support.live import Server
from tests.support.services import RedisServer

VARIABLES = (
    "SWITCHBOARD_URL",
    "SWITCHBOARD_TOKEN",
    "SWITCHBOARD_SPOOL_DIR",
    "REDIS_URL",
    "AGENT_NAME",
    "CHAT_TOOL_CONVERSATION_ID",
)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield
    switchboard.set_bus_for_testing(None)


@pytest.fixture
def bus() -> InMemoryBus:
    """A bus in memory, set."""
    bus = InMemoryBus()
    switchboard.set_bus_for_testing(bus)
    return bus


def envelope(bus: switchboard.Bus, topic: str) -> dict[str, object]:
    """Return the last envelope on a topic."""
    return bus.read(topic, limit=1)[0].payload


def test_message_to_a_conversation_is_one_envelope_on_one_topic(bus: InMemoryBus) -> None:
    answer = chat_send("chat:c1", "hello")

    sent = envelope(bus, "chat:c1")
    assert answer == {"ok": True, "envelope_id": sent["id"], "published_to": ["chat:c1"]}
    assert {name: sent[name] for name in sent if name not in ("id", "created_at")} == {
        "conversation_id": "c1",
        "sender": "agent:unknown",
        "recipient": "chat:c1",
        "type": "message",
        "content": "hello",
        "metadata": {},
    }
    age = datetime.now(UTC) - datetime.fromisoformat(str(sent["created_at"]))
    assert timedelta(0) <= age < timedelta(seconds=5)


def test_message_to_an_agent_is_one_envelope_on_two_topics(bus: InMemoryBus) -> None:
    answer = chat_send("agent:Dialogue", "hello", conversation_id="c1")

    (first,), (second,) = bus.read("chat:c1"), bus.read("chat:Dialogue")
    assert answer["published_to"] == ["chat:c1", "chat:Dialogue"]
    assert first.payload == second.payload
    assert first.payload["id"] == answer["envelope_id"]
    assert first.id != second.id


def test_agent_and_conversation_of_one_name_share_a_topic(bus: InMemoryBus) -> None:
    assert chat_send("agent:X", "hello", "X")["published_to"] == ["chat:X"]
    assert len(bus.read("chat:X")) == 1


def test_recipient_and_content_are_trimmed(bus: InMemoryBus) -> None:
    chat_send("  agent: Dialogue ", " hello \n", " c1 ")

    sent = envelope(bus, "chat:Dialogue")
    assert (sent["recipient"], sent["content"], sent["conversation_id"]) == ("agent:Dialogue", "hello", "c1")


@pytest.mark.parametrize("content", ["", " ", "\n\t"])
def test_blank_content_is_refused(bus: InMemoryBus, content: str) -> None:
    with pytest.raises(ValueError, match="content"):
        chat_send("chat:c1", content)

    assert bus.read("chat:c1") == []


@pytest.mark.parametrize(
    "recipient", ["", "c1", "chat", "chat:", "agent:", "chat: ", "agent:  ", "user:Bob", "stream:c1", "Agent:A", ":c1"]
)
def test_wrong_recipient_is_refused_whatever_the_conversation(bus: InMemoryBus, recipient: str) -> None:
    with pytest.raises(ValueError, match="recipient"):
        chat_send(recipient, "hello", conversation_id="c1")

    assert bus.read("chat:c1") == []


@pytest.mark.parametrize("recipient", [f"agent:{'x' * 201}", "agent:a\0b", "agent:\ud800"])
def test_impossible_topic_is_refused_before_anything_is_published(bus: InMemoryBus, recipient: str) -> None:
    with pytest.raises(Refused):
        chat_send(recipient, "hello", "c1")

    assert bus.read("chat:c1") == []


@pytest.mark.parametrize(
    ("recipient", "explicit", "context", "environment", "expected"),
    [
        ("chat:suffix", "explicit", "context", "environment", "suffix"),
        ("agent:A", "explicit", "context", "environment", "explicit"),
        ("agent:A", None, "context", "environment", "context"),
        ("agent:A", " ", "context", "environment", "context"),
        ("agent:A", None, None, "environment", "environment"),
        ("agent:A", None, " ", " environment ", "environment"),
    ],
)
def test_conversation_is_found_in_this_order(
    bus: InMemoryBus,
    monkeypatch: pytest.MonkeyPatch,
    recipient: str,
    explicit: str | None,
    context: str | None,
    environment: str,
    expected: str,
) -> None:
    monkeypatch.setenv("CHAT_TOOL_CONVERSATION_ID", environment)

    send_message(recipient, "hello", conversation_id=explicit, context={"conversation_id": context})

    assert envelope(bus, f"chat:{expected}")["conversation_id"] == expected


def test_no_conversation_is_an_error(bus: InMemoryBus) -> None:
    with pytest.raises(ValueError, match=r"^conversation_id not available for agent recipient$"):
        chat_send("agent:Dialogue", "hello")

    assert bus.read("chat:Dialogue") == []


@pytest.mark.parametrize(
    ("running_agent", "environment", "expected"),
    [
        ("Triage", "Other", "agent:Triage"),
        ("agent:Triage", "Other", "agent:Triage"),
        (None, " Other ", "agent:Other"),
        (" ", "Other", "agent:Other"),
        (None, " ", "agent:unknown"),
        (None, None, "agent:unknown"),
    ],
)
def test_sender_is_the_running_agent_else_the_environments(
    bus: InMemoryBus,
    monkeypatch: pytest.MonkeyPatch,
    running_agent: str | None,
    environment: str | None,
    expected: str,
) -> None:
    if environment is not None:
        monkeypatch.setenv("AGENT_NAME", environment)

    send_message("chat:c1", "hello", context={"agent": running_agent})

    assert envelope(bus, "chat:c1")["sender"] == expected


@pytest.mark.parametrize(
    ("context", "metadata", "expected"),
    [
        (None, None, {}),
        (None, {"a": 1}, {"a": 1}),
        ({}, None, {"hop": 1}),
        ({"metadata": {"hop": 3, "b": 2}}, {"a": 1}, {"a": 1, "hop": 4}),
        ({"metadata": {"hop": 3}}, {"hop": 7}, {"hop": 8}),
        (None, {"hop": 7}, {"hop": 8}),
        (None, {"hop": "7"}, {"hop": 1}),
        (None, {"hop": True}, {"hop": 1}),
        (None, {"hop": -1}, {"hop": 1}),
        ({"metadata": "wrong"}, None, {"hop": 1}),
        (None, {"hop": (1 << 31) - 1}, {"hop": (1 << 31) - 1}),
    ],
)
def test_hop_is_one_more_than_that_of_what_is_answered(
    bus: InMemoryBus, context: dict[str, object] | None, metadata: dict[str, object] | None, expected: dict[str, object]
) -> None:
    before = dict(metadata or {})

    send_message("chat:c1", "hello", context=context, metadata=metadata)

    assert envelope(bus, "chat:c1")["metadata"] == expected
    assert (metadata or {}) == before


# Over every bus.


@pytest.mark.django_db(transaction=True)
def test_record_has_one_event_and_two_posts() -> None:
    switchboard.set_bus(LogBus(principals.SYSTEM))

    answer = chat_send("agent:Dialogue", "hello", "c1")

    (event,) = log.read_after("c1", 0, 10)
    assert (event.event_id, event.kind) == (answer["envelope_id"], "message")
    with connection.cursor() as cursor:
        cursor.execute("SELECT topic FROM conversations_post ORDER BY id")
        assert [row[0] for row in cursor.fetchall()] == answer["published_to"]


def test_environment_with_url_and_token_is_http(
    served: Server, served_token: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SWITCHBOARD_URL", served.url)
    monkeypatch.setenv("SWITCHBOARD_TOKEN", served_token)
    monkeypatch.setenv("SWITCHBOARD_SPOOL_DIR", str(tmp_path))
    monkeypatch.setenv("AGENT_NAME", "Triage")
    conversation = uuid4().hex

    with get_bus() as bus:  # type: ignore[attr-defined]
        answer = chat_send(f"agent:Dialogue-{conversation}", "hello", conversation)

    assert isinstance(bus, HttpBus)
    rows = served.rows(
        "SELECT e.event_id,p.topic FROM conversations_post p JOIN conversations_event e"
        " ON e.conversation_id=p.conversation_id AND e.seq=p.event_seq WHERE p.topic IN (?,?) ORDER BY p.id",
        answer["published_to"],
    )
    assert rows == [(answer["envelope_id"], topic) for topic in answer["published_to"]]


def test_environment_with_a_redis_is_redis(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", redis_server.url)

    with get_bus() as bus:  # type: ignore[attr-defined]
        answer = chat_send("agent:Dialogue", "hello", "c1")

        assert isinstance(bus, RedisBus)
        assert [envelope(bus, topic)["id"] for topic in answer["published_to"]] == [answer["envelope_id"]] * 2


def test_bus_is_found_once(bus: InMemoryBus) -> None:
    assert get_bus() is get_bus() is bus


@pytest.mark.parametrize(
    ("environment", "missing"), [({}, "REDIS_URL"), ({"SWITCHBOARD_URL": "http://x"}, "SWITCHBOARD_TOKEN")]
)
def test_no_bus_is_an_error_that_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], missing: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(NotConfigured, match=missing):
        get_bus()


def test_spool_of_the_environment_is_one_for_each_agent_and_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("SWITCHBOARD_TOKEN", "sb_x")
    for url, agent in (("http://a", "A"), ("http://a", "B"), ("http://b", "A"), ("http://a", "A")):
        monkeypatch.setenv("SWITCHBOARD_URL", url)
        monkeypatch.setenv("AGENT_NAME", agent)
        get_bus().close()  # type: ignore[attr-defined]
        switchboard.set_bus(None)

    assert len(list((tmp_path / "switchboard" / "spool").iterdir())) == 3
