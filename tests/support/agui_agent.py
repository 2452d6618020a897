"""An AG-UI agent as others write them: the public package and a web server, nothing of ours. A process of its own.

    python -m tests.support.agui_agent PORT

The first word of the last message says what it does. What it was sent can be read at `GET /inputs`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from ag_ui.core import (
    CustomEvent,
    Interrupt,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from ag_ui.encoder import EventEncoder

INPUTS: list[dict[str, Any]] = []
RAW = {  # what no agent should send
    "brackets": b"data: " + b"[" * (1 << 20) + b"\n\n",
    "junk": b"data: not valid json\n\n",
    "typeless": b"data: {}\n\n",
    "wrong": b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":7}\n\n',
    "endless": b"data: " + b"x" * (2 << 20),
    "early": b'data: {"type":"TEXT_MESSAGE_START","messageId":"m"}\n\n',
    "unopened": b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n'
    b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}\n\n',
    "cut": b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\n',
}


def text_events(text: str, id_: str = "m1") -> list[Any]:
    """Say something in two pieces."""
    half = len(text) // 2
    pieces = [TextMessageContentEvent(message_id=id_, delta=part) for part in (text[:half], text[half:]) if part]
    return [TextMessageStartEvent(message_id=id_, role="assistant"), *pieces, TextMessageEndEvent(message_id=id_)]


def call(name: str, arguments: dict[str, Any], id_: str = "c1") -> list[Any]:
    """Call a tool of its own."""
    return [
        ToolCallStartEvent(tool_call_id=id_, tool_call_name=name),
        ToolCallArgsEvent(tool_call_id=id_, delta=json.dumps(arguments)),
        ToolCallEndEvent(tool_call_id=id_),
    ]


async def run(run_input: RunAgentInput) -> AsyncIterator[Any]:
    """Make the events of a run."""
    ids = {"thread_id": run_input.thread_id, "run_id": run_input.run_id}
    words = [message.content for message in run_input.messages if message.role == "user"][-1]
    word = str(words).split(" ")[0]
    if word == "replay":
        yield RunStartedEvent(thread_id=run_input.thread_id, run_id="earlier")
        for event in [*call("weather", {"city": "Rome"}, "c0"), *text_events("An earlier answer", "m0")]:
            yield event
        yield RunFinishedEvent(thread_id=run_input.thread_id, run_id="earlier")
    yield RunStartedEvent(**ids)
    if run_input.resume:
        for event in text_events(f"resumed with {json.dumps([entry.payload for entry in run_input.resume])}", "m2"):
            yield event
        yield RunFinishedEvent(**ids)
        return
    if word == "fail":
        yield RunErrorEvent(message="the oven is broken", code="oven")
        return
    if word == "hang":
        for event in text_events("Thinking", "m0")[:2]:
            yield event
        await asyncio.sleep(600)
    if word == "ask":
        for event in [*text_events("May I?"), *call("send_email", {"to": "a@b.example"})]:
            yield event
        interrupt = Interrupt(id="int-1", reason="tool_call", message="Send it?", tool_call_id="c1")
        yield RunFinishedEvent(**ids, outcome=RunFinishedInterruptOutcome(interrupts=[interrupt]))
        return
    if word == "tool":
        result = ToolCallResultEvent(message_id="r1", tool_call_id="c1", content="18 degrees")
        steps = [StepStartedEvent(step_name="look"), *call("weather", {"city": "Bonn"}), result]
        for event in [*steps, StepFinishedEvent(step_name="look"), StateSnapshotEvent(snapshot={"city": "Bonn"})]:
            yield event
        yield CustomEvent(name="colour", value="blue")
    for event in text_events(f"You said: {words}"):
        yield event
    yield RunFinishedEvent(**ids, usage=[TokenUsage(input_tokens=5, output_tokens=3)])


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve it."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/inputs":
        await answer(send, 200, b"application/json", json.dumps(INPUTS).encode())
    elif scope["path"] == "/moved":
        head = [(b"location", b"/"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 307, "headers": head})
        await send({"type": "http.response.body", "body": b""})
    elif scope["path"] == "/page":
        await answer(send, 200, b"text/html", b"<h1>hello</h1>")
    elif scope["path"] == "/broken":
        await answer(send, 503, b"text/plain", b"no oven today")
    else:
        await stream(scope, receive, send)


async def answer(send: Any, status: int, kind: bytes, body: bytes) -> None:
    """Send a whole answer."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": body})


async def stream(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Send the events of a run, or a file of them."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    run_input = RunAgentInput.model_validate_json(body)
    head = {name.decode(): value.decode() for name, value in scope["headers"]}
    INPUTS.append(run_input.model_dump(by_alias=True, mode="json") | {"authorization": head.get("authorization", "")})
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
    words = str([message.content for message in run_input.messages if message.role == "user"][-1])
    encoder = EventEncoder()
    if (word := words.partition(" ")[0]) in RAW and not run_input.resume:
        await send({"type": "http.response.body", "body": RAW[word], "more_body": True})
    elif word == "play":
        data = await asyncio.to_thread(Path(words.partition(" ")[2]).read_bytes)
        await send({"type": "http.response.body", "body": data, "more_body": True})
    else:
        async for event in run(run_input):
            await send({"type": "http.response.body", "body": encoder.encode(event).encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", lifespan="off")
