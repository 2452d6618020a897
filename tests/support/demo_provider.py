"""An OpenAI-compatible server that thinks with the demo model's rules: both APIs, streamed. A real process:
`python -m tests.support.demo_provider` prints its base address; or `answer` in a `ProviderServer`."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from agents import Agent, FunctionTool, handoff

from agents_app.demo.decisions import DemoCall, DemoOffer, Say, decide
from agents_app.demo.model import _events
from tests.support.provider_server import Answer, Asked, ProviderServer

PREFIX = "transfer_to_"


def answer(_n: int, request: Asked) -> Answer:
    """Return a streamed request of either API."""
    if request.path.endswith("/responses"):
        return Answer(b"".join(_responses(request.body)))
    return Answer(b"".join(_chat(request.body)) + b"data: [DONE]\n\n")


def _responses(body: dict[str, Any]) -> Iterator[bytes]:
    items = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    form = body.get("text", {}).get("format", {})
    for event in _events(items, _decided(items, body.get("tools", ()), form.get("schema"))):
        yield f"event: {event.type}\ndata: {event.model_dump_json(by_alias=True, exclude_none=True)}\n\n".encode()


def _chat(body: dict[str, Any]) -> Iterator[bytes]:
    items = [item for message in body["messages"] for item in _items(message)]
    tools = [tool["function"] for tool in body.get("tools", ())]
    form = body.get("response_format", {}).get("json_schema", {})
    step = _decided(items, tools, form.get("schema"))
    if isinstance(step, Say):
        deltas: list[dict[str, Any]] = [{"content": step.text[n : n + 20]} for n in range(0, len(step.text), 20)]
    else:
        function = {"name": step.name, "arguments": json.dumps(step.arguments)}
        deltas = [{"tool_calls": [{"index": 0, "id": uuid4().hex, "type": "function", "function": function}]}]
    reason = "stop" if isinstance(step, Say) else "tool_calls"
    for number, delta in enumerate([*deltas, {}]):
        choice = {"index": 0, "delta": delta, "finish_reason": reason if number == len(deltas) else None}
        yield _chunk([choice], None)
    yield _chunk([], {"prompt_tokens": len(items), "completion_tokens": 1, "total_tokens": len(items) + 1})


def _chunk(choices: list[dict[str, Any]], usage: dict[str, int] | None) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "demo", "choices": choices}
    return f"data: {json.dumps(chunk | {'usage': usage})}\n\n".encode()


def _items(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Turn a chat message into the items that the rules read."""
    if message["role"] == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
    elif message["role"] in ("user", "assistant") and message.get("content"):
        yield {"role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls", ()):
        yield {"type": "function_call", "call_id": call["id"], "name": call["function"]["name"]}


def _decided(items: list[Any], tools: Any, schema: dict[str, Any] | None) -> Say | DemoCall:
    """Ask the rules; a tool called `transfer_to_...` is a handoff."""
    own = [t for t in tools if not t["name"].startswith(PREFIX)]
    desks = [t["name"].removeprefix(PREFIX).replace("_", " ") for t in tools if t["name"].startswith(PREFIX)]
    return decide(DemoOffer(items, [_tool(t) for t in own], [handoff(Agent(name=name)) for name in desks], schema))


def _tool(offered: dict[str, Any]) -> FunctionTool:
    async def never(_ctx: object, _arguments: str) -> None:
        raise AssertionError("the server calls no tool")

    return FunctionTool(offered["name"], "", dict(offered["parameters"]), never, strict_json_schema=False)


async def _serve() -> None:
    async with ProviderServer(answer) as server:
        print(server.url, flush=True)  # noqa: T201  # the process's one line
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
