"""What clients of the public interface do with a server: the official `openai` client, websockets and plain HTTP.

Each check has connections of its own; `test_first_second` makes all at once, of a server that has just started.
A check is a function of `Public` that asserts; a new one is a line in `CHECKS`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import openai
from websockets.sync.client import ClientConnection, connect

from tests.support.live import Server

MODEL = "Dialogue"
PATIENCE = 60.0  # seconds for one answer, on a busy machine
RAIN: Any = {
    "type": "function",
    "name": "rain",
    "parameters": {"type": "object", "properties": {"street": {"type": "string"}}},
}


class Public(NamedTuple):
    """A server and a token for it."""

    server: Server
    token: str

    def openai(self) -> openai.OpenAI:
        """Make the official client, which does not hide a refusal by trying again."""
        return openai.OpenAI(base_url=f"{self.server.url}/v1", api_key=self.token, timeout=PATIENCE, max_retries=0)

    def socket(self, path: str) -> ClientConnection:
        """Open a websocket."""
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"ws://127.0.0.1:{self.server.port}{path}"
        return connect(url, additional_headers=headers, compression=None, open_timeout=PATIENCE)


def answers_as_json(public: Public) -> None:
    """Ask an agent, then go on from its answer."""
    with public.openai() as client:
        first = client.responses.create(model=MODEL, input="Hello.")
        assert (first.status, first.output_text != "") == ("completed", True)
        second = client.responses.create(model=MODEL, input="And?", previous_response_id=first.id)
        assert (second.status, second.previous_response_id) == ("completed", first.id)


def answers_as_stream(public: Public) -> None:
    """Stream an answer; its pieces are the whole."""
    texts, kinds = [], []
    with public.openai() as client:
        for event in client.responses.create(model=MODEL, input="Hello.", stream=True):
            kinds.append(event.type)
            if event.type == "response.output_text.delta":
                texts.append(event.delta)
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
    assert event.type == "response.completed"
    assert "".join(texts) == event.response.output_text != ""


def calls_tools(public: Public) -> None:
    """Have a tool of the client's called, and return what it found."""
    with public.openai() as client:
        response = client.responses.create(
            model=MODEL, input="Rain in Elm street?", tools=[RAIN], tool_choice="required"
        )
        (call,) = (item for item in response.output if item.type == "function_call")
        assert (call.name, json.loads(call.arguments)) == ("rain", {"street": "Elm street"})
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "none since noon"}
        answer = client.responses.create(model=MODEL, input=[result], tools=[RAIN], previous_response_id=response.id)
        assert answer.status == "completed"


def answers_on_a_socket(public: Public) -> None:
    """Ask by the websocket of the same address."""
    with public.socket("/v1/responses") as socket:
        socket.send(json.dumps({"type": "response.create", "model": MODEL, "input": "Hello."}))
        kinds = [json.loads(socket.recv(timeout=PATIENCE))["type"]]
        while kinds[-1] not in ("response.completed", "response.failed", "error"):
            kinds.append(json.loads(socket.recv(timeout=PATIENCE))["type"])
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")


def lists_models(public: Public) -> None:
    """List the models: the served agents are among them."""
    with public.openai() as client:
        assert MODEL in [model.id for model in client.models.list()]
        assert client.models.retrieve(MODEL).id == MODEL


def fetches_by_id(public: Public) -> None:
    """Ask, then fetch the response again by its id."""
    with public.openai() as client:
        answer = client.responses.create(model=MODEL, input="Hello.")
        assert client.responses.retrieve(answer.id).output_text == answer.output_text


def publishes_and_lists(public: Public) -> None:
    """Publish, and find it in the list of conversations and in its topic."""
    key = f"public-{uuid.uuid4()}"
    payload = {"type": "message", "conversation_id": key, "sender": "agent:Outside", "content": "here I am"}
    status, stored = public.server.publish(public.token, f"chat:{key}", payload)
    assert (status, stored["conversation_id"]) == (201, key)
    _, listed = public.server.request("GET", "/api/v1/conversations?limit=100", token=public.token)
    assert key in [item["conversation_id"] for item in listed["items"]]
    _, read = public.server.request("GET", f"/api/v1/topics/chat:{key}/messages", token=public.token)
    assert [item["payload"]["content"] for item in read["items"]] == ["here I am"]


def follows_live(public: Public) -> None:
    """Subscribe to a conversation, then see what is published."""
    key = f"live-{uuid.uuid4()}"
    topic, payload = f"stream:{key}", {"event": "log", "conversation_id": key, "text": "seen"}
    with public.socket("/ws/") as socket:
        socket.send(json.dumps({"op": "subscribe", "topic": topic, "after": 0}))
        frame = json.loads(socket.recv(timeout=PATIENCE))
        while frame["t"] != "caught_up":
            frame = json.loads(socket.recv(timeout=PATIENCE))
        assert public.server.publish(public.token, topic, payload)[0] == 201
        while frame["t"] != "events":
            frame = json.loads(socket.recv(timeout=PATIENCE))
    assert [event["body"]["text"] for event in frame["events"]] == ["seen"]


def message_starts_a_run(public: Public) -> None:
    """Say something to an agent: nobody finds it without an answer."""
    key = f"asked-{uuid.uuid4()}"
    payload = {"type": "message", "conversation_id": key, "sender": "Rosa", "recipient": f"agent:{MODEL}"}
    path = f"/api/v1/conversations/{key}/events?limit=100"
    assert public.server.publish(public.token, f"chat:{key}", payload | {"content": "Hello."})[0] == 201
    kinds = [item["kind"] for item in public.server.request("GET", path, token=public.token)[1]["items"]]
    assert "run.queued" in kinds


CHECKS: tuple[Callable[[Public], None], ...] = (
    answers_as_json,
    answers_as_stream,
    calls_tools,
    answers_on_a_socket,
    lists_models,
    fetches_by_id,
    publishes_and_lists,
    follows_live,
    message_starts_a_run,
)
