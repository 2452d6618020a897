"""An agent's token: it publishes as its own agent, and reads its own topics and where somebody else named it."""

import json

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from conversations.events.payload import MAX_BYTES
from tests.support.doors import Answer, Caller, events_of, message, message_payload
from tests.support.live import Server, until


def encode_utf8(value: object) -> bytes:
    """Write it as JSON, compact and not in ASCII."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def topic(name: str) -> str:
    """Write the address of a topic."""
    return f"/api/v1/topics/{name}/messages"


@pytest.mark.parametrize("name", ["Desk", "agent:Desk"])
@pytest.mark.parametrize("field", ["sender", "agent"])
def test_it_publishes_under_either_spelling_of_its_name(agent, name, field):
    assert agent.publish("stream:own", {"event": "log", field: name}).status == 201


@pytest.mark.parametrize("name", ["Desk/Triage", "agent:Desk/Triage"])
@pytest.mark.parametrize("field", ["sender", "agent"])
def test_it_publishes_as_the_agents_of_its_program(agent, name, field):
    assert agent.publish("stream:own", {"event": "log", field: name}).status == 201
    assert agent.get(topic("chat:Desk/Triage")).status == 403


def test_what_a_person_typed_is_not_its_own_words(server, agent):
    assert agent.publish("stream:typed", {"event": "user_message", "text": "hello"}).status == 201

    ((_, kind, body),) = events_of(server, "typed")
    assert (kind, body) == ("user_message", {"event": "user_message", "text": "hello"})


@pytest.mark.parametrize(
    "names",
    [
        {"sender": "agent:Other"},
        {"sender": "agent:Desks/Triage"},
        {"agent": "Other/Desk"},
        {"agent": "Other"},
        {"sender": "Desk", "agent": "Other"},
        {"sender": "desk"},
        {"sender": "agent:agent:Desk"},
        {"sender": "user:Desk"},
        {"sender": " "},
        {"sender": "system"},
    ],
)
def test_it_publishes_as_nobody_else(server, agent, names):
    answer = agent.publish("stream:others", {"event": "log", **names})
    in_batch = agent.batch(message("stream:others", {"event": "log", **names}), message("stream:b", {"event": "log"}))

    assert (answer.status, answer.body["error"]["code"]) == (403, "not_allowed")
    assert in_batch.body["items"][0]["error"]["code"] == "not_allowed"
    assert "seq" in in_batch.body["items"][1]
    assert events_of(server, "others") == []


@pytest.mark.parametrize(
    ("payload", "field", "name"),
    [
        ({"type": "message", "recipient": "agent:B", "content": "x"}, "sender", "agent:Desk"),
        ({"type": "message", "sender": None, "content": "x"}, "sender", "agent:Desk"),
        ({"type": "message", "sender": 7, "content": "x"}, "sender", "agent:Desk"),
        ({"event": "output", "text": "x"}, "agent", "Desk"),
        ({"event": "output", "text": "x", "agent": ""}, "agent", "Desk"),
        ({}, "agent", "Desk"),
    ],
)
def test_a_message_that_names_nobody_is_its_own(server, agent, payload, field, name):
    key = f"unnamed-{field}-{len(json.dumps(payload))}"
    assert agent.publish(f"stream:{key}", payload).status == 201

    ((_, _, body),) = events_of(server, key)
    assert body[field] == name


def test_its_name_counts_toward_the_size_in_bytes(server, agent):
    text = "漢" * ((MAX_BYTES - 30) // 3)
    whole, shorter = (
        encode_utf8(message("stream:sized", {"event": "log", "text": words})) for words in (text, text[:-20])
    )

    assert agent.ask("POST", "/api/v1/publish", whole).status == 413
    assert agent.ask("POST", "/api/v1/publish", shorter).status == 201
    assert len(events_of(server, "sized")) == 1


def test_the_last_of_two_names_counts_for_everybody(server, agent):
    for first, last, status in (("agent:Desk", "agent:Other", 403), ("agent:Other", "agent:Desk", 201)):
        text = f'{{"topic":"stream:two","payload":{{"event":"log","sender":"{first}","sender":"{last}"}}}}'
        assert agent.ask("POST", "/api/v1/publish", text.encode()).status == status

    assert [body["sender"] for _, _, body in events_of(server, "two")] == ["agent:Desk"]


def test_its_events_are_its_tokens_whatever_they_claim(server, agent):
    agent.publish("stream:claims", {"event": "log", "principal": "user:ada", "run_id": "r1"})

    rows = server.rows(
        "SELECT e.principal, e.run FROM conversations_event e JOIN conversations_conversation c"
        " ON c.id=e.conversation_id WHERE c.key='claims' AND e.body LIKE '%user:ada%'"
    )
    assert rows == [("token:desk", None)]


def test_it_reads_its_own_topics(caller, agent):
    caller.publish("chat:Desk", message_payload("somewhere", "come", recipient="agent:Desk"))
    caller.publish("control:Desk", {"action": "stop"})

    assert agent.get(topic("chat:Desk")).body["items"][0]["payload"]["content"] == "come"
    assert agent.get(topic("control:Desk")).body["items"][0]["payload"] == {"action": "stop"}
    assert agent.get(topic("chat:agent:Desk")).status == 200


def test_what_others_say_in_a_conversation_of_its_name_hides_nothing_of_its_inbox(caller, agent):
    for n in range(3):
        envelope = message_payload("errands", f"errand {n}", recipient="agent:Desk")
        assert caller.publish("chat:Desk", envelope, f"errand-{n}").status == 201
    assert caller.publish("chat:Desk", message_payload("Desk", "aside", recipient="agent:Other"), "aside").status == 201

    for limit in (1, 2):
        newest = agent.get(f"{topic('chat:Desk')}?limit={limit}").body["items"]
        assert [item["id"] for item in newest] == ["errand-1", "errand-2"][-limit:]
    assert "aside" not in [item["id"] for item in agent.get(topic("chat:Desk")).body["items"]]


def test_it_reads_conversations_in_which_somebody_else_named_it(caller, agent):
    for name in ("stream:named", "chat:named"):
        assert agent.get(topic(name)).status == 403
    caller.publish("chat:named", message_payload("named", "your turn", recipient="agent:Desk"))

    assert agent.get(topic("stream:named")).body["items"][0]["payload"]["content"] == "your turn"
    assert agent.get(topic("chat:named")).status == 200
    assert agent.get("/api/v1/conversations/named").body["conversation_id"] == "named"
    assert len(agent.get("/api/v1/conversations/named/events").body["items"]) == 1
    assert "named" in listed(agent.get("/api/v1/conversations?q=named&limit=200"))


@pytest.mark.parametrize("sender", ["Desk", "agent:Desk", None])
@pytest.mark.parametrize("recipient", ["Desk", "agent:Desk", "chat:Desk"])
def test_it_cannot_name_itself_into_a_conversation(caller, agent, sender, recipient):
    key = f"self-{sender}-{recipient}".replace(":", "-")
    caller.publish(f"chat:{key}", message_payload(key, "secret"))
    envelope = message_payload(key, "me too", recipient=recipient, sender=sender)
    assert agent.publish(f"chat:{key}", envelope).status == 201
    assert agent.publish(f"stream:{key}", {"event": "tool_step", "name": "x"}).status == 201

    for address in (topic(f"stream:{key}"), topic(f"chat:{key}"), f"/api/v1/conversations/{key}"):
        assert refused(agent.get(address))
    assert refused(agent.get(f"/api/v1/conversations/{key}/events"))
    assert key not in listed(agent.get(f"/api/v1/conversations?q={key}"))
    assert key in listed(caller.get(f"/api/v1/conversations?q={key}"))


@pytest.mark.parametrize(
    "name", ["chat:Other", "control:Other", "dlq:Desk", "signal:all", "stream:Desk", "stream:none"]
)
def test_it_reads_nobody_elses_topics(agent, name):
    assert refused(agent.get(topic(name)))


def test_it_imports_nothing(agent):
    assert refused(agent.ask("POST", "/api/v1/import", b'{"conversation": "d"}\n{"end": 1}'))


def test_its_socket_follows_what_it_may_read_and_nothing_else(server, caller, agent):
    caller.publish("chat:heard", message_payload("heard", "hello", recipient="agent:Desk"))
    caller.publish("chat:unheard", message_payload("unheard", "secret"))
    with follow(server, agent) as wire:
        wire.send(json.dumps({"op": "subscribe", "topic": "stream:heard"}))
        until(lambda: json.loads(wire.recv(60))["t"] == "caught_up")
        wire.send(json.dumps({"op": "subscribe", "topic": "stream:unheard"}))
        answer = json.loads(wire.recv(60))
        assert (answer["t"], answer["code"], answer["field"]) == ("error", "not_allowed", "topic")
        caller.publish("chat:unheard", message_payload("unheard", "more"))
        caller.publish("chat:heard", message_payload("heard", "again"))
        frame = json.loads(wire.recv(60))
        assert (frame["topic"], frame["events"][0]["body"]["content"]) == ("stream:heard", "again")

        wire.send(json.dumps({"op": "subscribe", "topic": "fleet"}))
        with pytest.raises(ConnectionClosed) as closed:
            wire.recv(60)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4403


def test_its_use_is_noted_at_the_doors(server, callers):
    used = callers["used"]
    assert used.publish("stream:used", {"event": "log"}).status == 201

    def last_used() -> dict[str, str | None]:
        return dict(server.rows("SELECT name, last_used_at FROM conversations_token"))

    until(lambda: last_used()["used"], what="the use to be noted")
    first = last_used()
    for _ in range(3):
        used.publish("stream:used", {"event": "log"})
    assert last_used()["used"] == first["used"]
    assert first["idle"] is None


def refused(answer: Answer) -> bool:
    """Tell a refusal, which says nothing of whether there is such a thing."""
    return answer.status == 403 and answer.body["error"]["code"] == "not_allowed"


def listed(answer: Answer) -> list[str]:
    """Return the ids of a list."""
    return [item["conversation_id"] for item in answer.body["items"]]


def follow(server: Server, caller: Caller):  # type: ignore[no-untyped-def]  # websockets' own context manager
    """Open a socket."""
    address = f"ws://127.0.0.1:{server.port}/ws/"
    return connect(address, additional_headers={"Authorization": f"bearer {caller.token}"}, compression=None)
