"""Programs of the OpenAI Agents SDK against a scripted model server, and what is recorded of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agents import OpenAIResponsesModel
from agents.tracing import set_trace_processors
from openai import AsyncOpenAI

from switchboard import BusMessage, InMemoryBus
from switchboard.agent_watch import AgentWatch
from switchboard.span_events import SpanEvents
from tests.support import provider_answers
from tests.support.provider_answers import USAGE, Item
from tests.support.provider_server import Answer, Asked, ProviderServer


def whole(items: Sequence[Item], *, usage: Item | None = USAGE) -> Answer:
    """Make the answer of a server that does not stream."""
    body = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-test", "status": "completed"}
    body |= {"output": list(items), "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}
    return Answer(json.dumps(body).encode(), kind="application/json")


def in_turn(*steps: Sequence[Item]) -> Callable[[int, Asked], Answer]:
    """Answer the requests one after the other, streamed where it is asked for; after the last from the first again."""

    def answer(n: int, request: Asked) -> Answer:
        items = steps[n % len(steps)]
        return provider_answers.streamed(items) if request.body.get("stream") else whole(items)

    return answer


def by_results(*steps: Sequence[Item]) -> Callable[[int, Asked], Answer]:
    """Answer by how many results of calls a request brings: a program that ended within a run moves no other's turn."""

    def answer(_n: int, request: Asked) -> Answer:
        items = request.body["input"] if isinstance(request.body["input"], list) else []
        return whole(steps[sum(item.get("type") == "function_call_output" for item in items)])

    return answer


def completion(text: str = "", *calls: Item) -> Answer:
    """Make the answer of a server of Chat Completions."""
    message: Item = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": c["call_id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
            for c in calls
        ]
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "chat-test", "usage": usage}
    body["choices"] = [{"index": 0, "finish_reason": "stop", "message": message}]
    return Answer(json.dumps(body).encode(), kind="application/json")


def model(server: ProviderServer) -> OpenAIResponsesModel:
    """Make the SDK's own model, which asks this server."""
    return OpenAIResponsesModel("gpt-test", AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0))


@contextmanager
def watched(**more: Any) -> Iterator[tuple[AgentWatch, InMemoryBus]]:
    """Watch the SDK's runs of this process in the block, on a bus in memory."""
    bus = InMemoryBus()
    watch = AgentWatch(bus, SpanEvents(**more))
    set_trace_processors([watch])  # type: ignore[list-item]  # it has the methods
    try:
        yield watch, bus
    finally:
        set_trace_processors([])
        watch.shutdown()


def payloads(messages: Sequence[BusMessage]) -> list[dict[str, Any]]:
    """Return what messages say."""
    return [message.payload for message in messages]
