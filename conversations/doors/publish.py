"""`POST /api/v1/publish`: one message onto the bus, answered after its commit (design 3.6). A raw ASGI route."""

import json

import msgspec

from conversations import envelopes, log
from conversations.doors import http
from conversations.doors.bearers import Bearers
from conversations.engine import Engine
from conversations.envelopes import MAX_BYTES
from conversations.errors import IdReused, Invalid, SwitchboardError
from conversations.ids import new_id
from conversations.log.events import NewEvent
from conversations.principals import Principal

OVERHEAD = 4096  # bytes around a payload


class Publish(msgspec.Struct):
    """The body: a topic, a payload left as it came, and the bus message's id."""

    topic: str
    payload: msgspec.Raw
    id: str | None = None


_decoder = msgspec.json.Decoder(Publish)


class PublishDoor:
    """The route, bound to one engine."""

    def __init__(self, engine: Engine, bearers: Bearers) -> None:
        self._engine, self._bearers = engine, bearers

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Answer 201 `{id, conversation_id, seq}`, or an error."""
        try:
            if scope["method"] != "POST":
                raise _method_not_allowed()
            principal = await self._bearers.require(scope, "publish")
            event = read(await http.body(receive, MAX_BYTES + OVERHEAD), principal)
            (stored,) = await self._engine.store([event])
            if stored.clashes:
                raise IdReused("this id was published before with another payload", field="id")
        except SwitchboardError as error:
            await http.refuse(send, error)
        else:
            await http.answer(send, 201, _answer(event, stored.seq))


def read(body: bytes, principal: Principal) -> NewEvent:
    """Read one publish request. Raises Invalid or TooLarge, saying where."""
    try:
        asked = _decoder.decode(body)
        text = bytes(asked.payload).decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f'expected {{"topic", "payload", "id"?}} as JSON: {error}') from None
    envelopes.check_topic(asked.topic)
    if asked.id is not None and (not 1 <= len(asked.id) <= 200 or envelopes.fit(asked.id) != asked.id):
        raise Invalid("expected 1 to 200 characters", field="id")
    said = envelopes.read(bytes(asked.payload))
    fallback = said.id if said.kind != "token" else None
    event = log.of_payload(asked.topic, asked.id or (fallback or new_id())[:200], text, said, principal)
    envelopes.check_named(asked.topic, event.conversation)
    return event


def _answer(event: NewEvent, seq: int) -> bytes:
    body = {"id": event.bus_id, "conversation_id": event.conversation, "seq": seq if event.conversation else None}
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def _method_not_allowed() -> SwitchboardError:
    error = SwitchboardError("expected POST", code="method_not_allowed")
    error.status = 405
    return error
