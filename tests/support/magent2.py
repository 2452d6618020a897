"""A gateway, a worker and the chat tool that speak magent2's wire (CONTRACTS v1), for tests: what they put on Redis, in
which order, what they read and how strictly.

An entry has the fields `id` (a UUID of its own on each topic) and `payload` (compact ASCII JSON). The worker reads
`chat:AGENT` in the group `magent2`, acknowledges before it runs, and takes one message a conversation at a time.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import pydantic

from tests.support.services import RedisServer

GROUP = "magent2"
Json = dict[str, Any]


class Envelope(pydantic.BaseModel):
    """What a worker reads a message as."""

    id: str = pydantic.Field(default_factory=lambda: str(uuid.uuid4()))
    conversation_id: str
    sender: str
    recipient: str
    type: Literal["message", "control"]
    content: str | None = None
    metadata: Json = pydantic.Field(default_factory=dict)
    created_at: datetime = pydantic.Field(default_factory=lambda: datetime.now(UTC))


class Wire:
    """One program's connection to the bus."""

    def __init__(self, server: RedisServer) -> None:
        self.redis = server.client()

    def publish(self, topic: str, payload: Json) -> None:
        """Append an entry under an id of its own."""
        self.redis.xadd(topic, {"id": str(uuid.uuid4()), "payload": json.dumps(payload, separators=(",", ":"))})

    def publish_message(self, payload: Json) -> list[str]:
        """Put a message on its conversation's topic, and on its agent's."""
        kind, _, name = payload["recipient"].partition(":")
        topics = [f"chat:{payload['conversation_id']}"] + ([f"chat:{name}"] if kind == "agent" and name else [])
        for topic in topics:
            self.publish(topic, payload)
        return topics

    def entries(self, topic: str) -> list[tuple[str, Json]]:
        """Return each entry's id and payload."""
        entries: Any = self.redis.xrange(topic)
        return [(fields["id"], json.loads(fields["payload"])) for _, fields in entries]


class Gateway(Wire):
    """`POST /send` and `GET /stream/{conversation}`, without the HTTP around them."""

    def send(self, conversation: str, sender: str, recipient: str, content: str) -> str:
        """Send a message: its topics, then `user_message` on the stream. Metadata and times are dropped."""
        payload = {"id": str(uuid.uuid4()), "conversation_id": conversation, "sender": sender, "recipient": recipient}
        self.publish_message(payload | {"type": "message", "content": content})
        shown = {"event": "user_message", "conversation_id": conversation, "sender": sender, "text": content}
        self.publish(f"stream:{conversation}", shown | {"created_at": datetime.now(UTC).isoformat()})
        return payload["id"]

    def stream(self, conversation: str) -> list[Json]:
        """Return what whoever watches the conversation is sent."""
        return [payload for _, payload in self.entries(f"stream:{conversation}")]


def chat_send(wire: Wire, agent: str, recipient: str, content: str, conversation: str) -> Json:
    """Do what the tool of an agent does: no `user_message`."""
    envelope = Envelope(
        conversation_id=conversation, sender=f"agent:{agent}", recipient=recipient, type="message", content=content
    )
    published = wire.publish_message(envelope.model_dump(mode="json"))
    return {"ok": True, "envelope_id": envelope.id, "published_to": published}


Runner = Callable[[Envelope], Iterator[Json]]


def _event(name: str, envelope: Envelope, **fields: Any) -> Json:
    head = {"id": str(uuid.uuid4()), "conversation_id": envelope.conversation_id}
    return head | {"created_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"), "event": name} | fields


def echo(envelope: Envelope) -> Iterator[Json]:
    """Run without a model."""
    yield _event("token", envelope, text="echo", index=0)
    yield _event("output", envelope, text=envelope.content or "", usage=None)


def with_tool(envelope: Envelope) -> Iterator[Json]:
    """Run as the SDK's runner does: no agent's name, the tool's steps without id, conversation and time."""
    step = {"event": "tool_step", "name": "search", "tool_call_id": f"tc_{uuid.uuid4().hex}"}
    yield step | {"args": {"q": envelope.content}, "status": "start"}
    yield step | {"args": {}, "status": "success", "duration_ms": 3, "result_summary": "2 hits"}
    words = ["Found ", "two."]
    for index, text in enumerate(words):
        yield _event("token", envelope, text=text, index=index)
    yield _event("output", envelope, text="".join(words), usage={"input_tokens": 11, "output_tokens": 4})


def failing(envelope: Envelope) -> Iterator[Json]:
    """Run into a wrong input: the message ends as a dead letter, and the stream says nothing of it."""
    yield from ()
    raise ValueError(f"cannot read {envelope.content!r}")


class Worker(threading.Thread):
    """One agent's worker, until `stop`. `read` are the messages that it got, whatever it made of them."""

    def __init__(self, server: RedisServer, agent: str, runner: Runner = echo) -> None:
        super().__init__(daemon=True)
        self.wire, self.agent, self.runner = Wire(server), agent, runner
        self.read: list[Envelope] = []
        self.unreadable: list[str] = []
        self._done = threading.Event()
        self.wire.redis.xgroup_create(f"chat:{agent}", GROUP, id="0", mkstream=True)
        self.start()

    def run(self) -> None:
        """Read new entries, acknowledge them, and run each conversation's first."""
        topic, bus = f"chat:{self.agent}", self.wire.redis
        while not self._done.is_set():
            answer: Any = bus.xreadgroup(GROUP, "consumer-1", {topic: ">"}, count=100, block=100)
            taken = set[str]()
            for entry, fields in answer[0][1] if answer else ():
                bus.xack(topic, GROUP, entry)
                try:
                    envelope = Envelope.model_validate(json.loads(fields["payload"]))
                except ValueError:
                    self.unreadable.append(fields["payload"])
                    continue
                self.read.append(envelope)
                if envelope.conversation_id not in taken:
                    taken.add(envelope.conversation_id)
                    self._process(envelope)

    def _process(self, envelope: Envelope) -> None:
        bus, name = self.wire.redis, f"{self.agent}:{envelope.conversation_id}"
        if not bus.sadd(f"processed:{name}", envelope.id):
            return
        bus.expire(f"processed:{name}", 86_400)
        if not bus.set(f"lock:run:{name}", "1", nx=True, ex=60):
            return
        try:
            for event in self.runner(envelope):
                self.wire.publish(f"stream:{envelope.conversation_id}", event)
        except ValueError as error:
            letter = {"event": "dead_letter", "agent": self.agent, "conversation_id": envelope.conversation_id}
            letter |= {"envelope": envelope.model_dump(mode="json"), "error": f"ValueError: {error}"}
            self.wire.publish(f"dlq:{self.agent}", letter)
        finally:
            bus.delete(f"lock:run:{name}")

    def stop(self) -> None:
        """End it."""
        self._done.set()
        self.join()
