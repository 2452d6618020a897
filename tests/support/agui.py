"""AG-UI in tests: our routes in the test's own process, and a reader that holds a stream to the protocol's own types
and to its rules on order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any

from ag_ui.core import BaseEvent, Event, EventType, RunAgentInput, UserMessage
from pydantic import TypeAdapter

from conversations.asgi.agui.routes import AguiRoutes
from tests.support.response_desk import Answer, Asking, Desk
from tests.support.stand_in import MODEL, standing_in

Body = dict[str, Any]
AGENT = f"/api/v1/agui/agents/{MODEL}"
_OPENS = {
    EventType.TEXT_MESSAGE_START: ("text", 1), EventType.TEXT_MESSAGE_CONTENT: ("text", 0),
    EventType.TEXT_MESSAGE_END: ("text", -1), EventType.TOOL_CALL_START: ("call", 1),
    EventType.TOOL_CALL_ARGS: ("call", 0), EventType.TOOL_CALL_END: ("call", -1),
    EventType.STEP_STARTED: ("step", 1), EventType.STEP_FINISHED: ("step", -1),
}  # fmt: skip


@cache
def decoder() -> TypeAdapter[Any]:
    """The package's own reader of events."""
    return TypeAdapter(Event)


def input_of(thread: str, *messages: Any, run: str = "front-run-1", **more: Any) -> Body:
    """Make the input of a run by the package's own types; a text is a message of the user."""
    conversation = [
        UserMessage(id=f"front-{at}", content=words) if isinstance(words, str) else words
        for at, words in enumerate(messages)
    ]
    whole = RunAgentInput(thread_id=thread, run_id=run, messages=conversation, **more)
    return whole.model_dump(by_alias=True, mode="json")


def events_in(answer: Answer) -> list[Any]:
    """Return the events of a whole stream, held to the protocol."""
    assert answer.status == 200, answer.json
    assert answer.headers["content-type"].startswith("text/event-stream")
    return checked(pieces(answer.writes))


def pieces(writes: Iterable[bytes]) -> list[Any]:
    """Return the events of what was written, each by the package's reader; each write is one event or a comment."""
    events = []
    for write in writes:
        if not write or write.startswith(b":"):
            continue
        lines = write.decode().split("\n")
        assert lines[-2:] == ["", ""], write
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        assert len(data) == 1, write
        events.append(decoder().validate_json(data[0]))
    return events


def checked(events: list[Any]) -> list[Any]:
    """Return events whose order is the protocol's: within a run, what is opened once is continued and closed."""
    run = ""
    items: set[tuple[str, str]] = set()
    for event in events:
        match event.type:
            case EventType.RUN_STARTED:
                assert not run, "a run within a run"
                run, items = event.run_id, set()
            case EventType.RUN_FINISHED:
                assert (event.run_id, items) == (run, set()), "a run ended with something open"
                run = ""
            case EventType.RUN_ERROR:
                run, items = "", set()
            case _:
                assert run, f"{event.type} outside of a run"
                _follow(event, items)
    return events


def _follow(event: BaseEvent, items: set[tuple[str, str]]) -> None:
    kind, change = _OPENS.get(event.type, ("", 0))
    if not kind:
        return
    names = {"text": "message_id", "call": "tool_call_id", "step": "step_name"}
    item = (kind, str(getattr(event, names[kind])))
    assert (item in items) == (change < 1), f"{event.type} of {item}"
    if change > 0:
        items.add(item)
    elif change < 0:
        items.discard(item)


def kinds(events: Iterable[Any]) -> list[str]:
    """Return the types of events."""
    return [event.type.value for event in events]


def text_of(events: Iterable[Any]) -> str:
    """Return what was said."""
    return "".join(event.delta for event in events if event.type == EventType.TEXT_MESSAGE_CONTENT)


class AguiDesk(Desk):
    """The routes of AG-UI, and somebody who may ask."""

    def __init__(self, role: str = "operator") -> None:
        super().__init__(role)
        self.routes = AguiRoutes(self.context)

    def post(self, body: Any, path: str = AGENT, **more: Any) -> Answer:
        """Ask for a run and wait for the end of its stream."""
        return self.ask(body, path, **more)

    def play(self, thread: str, *messages: Any, **more: Any) -> list[Any]:
        """Ask for a run; return its events."""
        return events_in(self.post(input_of(thread, *messages, **more)))

    def watch(self, thread: str, query: str = "", **headers: str) -> list[Any]:
        """Read the whole stream of a run."""
        head = {"authorization": f"Bearer {self.token}", **headers}
        answer = self.ask(b"", f"/api/v1/agui/conversations/{thread}{query}", method="GET", headers=head)
        return events_in(answer)

    @asynccontextmanager
    async def asking(
        self, body: Any, path: str = AGENT, *, method: str = "POST", headers: dict[str, str] | None = None
    ) -> AsyncIterator[Asking]:
        """Hold one request open."""
        head = {"authorization": f"Bearer {self.token}"} if headers is None else headers
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        asking = Asking(raw, method, path, head)
        asking.task = asyncio.create_task(self.routes(asking.scope, asking.receive, asking.send))
        try:
            yield asking
        finally:
            asking.leave()
            await asking.task


@contextmanager
def agui_open(role: str = "operator") -> Iterator[AguiDesk]:
    """A desk with a stand-in behind it."""
    desk = AguiDesk(role)
    try:
        with standing_in():
            yield desk
    finally:
        desk.close()
