"""Streamed bodies of a Responses server, made from the items of its answer: messages, calls, thoughts."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.provider_server import Answer

Item = dict[str, Any]
USAGE: Item = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 16,
}


def message(text: str, phase: str | None = None, number: int = 1) -> Item:
    """Make a message; `number` tells those of one answer apart."""
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": content}
    return item | ({"phase": phase} if phase else {})


def call(name: str, arguments: Item, call_id: str) -> Item:
    """Make a function call."""
    sent = json.dumps(arguments)
    item = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": sent}
    return item | {"status": "completed"}


def streamed(items: Sequence[Item], *, usage: Item | None = USAGE) -> Answer:
    """Make the streamed answer of a server."""
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress"}
    whole |= {"output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": None}
    events = [{"type": "response.created", "response": whole}]
    for index, item in enumerate(items):
        events += _events(item, index)
    done = whole | {"output": list(items), "status": "completed", "usage": usage}
    events.append({"type": "response.completed", "response": done})
    return Answer("".join(_lines(events)).encode())


def _events(item: Item, index: int) -> list[Item]:
    at = {"item_id": item["id"], "output_index": index}
    begun = {**item, "status": "in_progress", **({"content": []} if "content" in item else {"arguments": ""})}
    if item["type"] == "message":
        text, at = item["content"][0]["text"], at | {"content_index": 0}
        pieces = [text[n : n + 4] for n in range(0, len(text), 4)]
        inner = [{"type": "response.output_text.delta", "delta": piece, "logprobs": [], **at} for piece in pieces]
        inner.append({"type": "response.output_text.done", "text": text, "logprobs": [], **at})
    else:
        sent = item["arguments"]
        inner = [
            {"type": "response.function_call_arguments.delta", "delta": sent, **at},
            {"type": "response.function_call_arguments.done", "arguments": sent, "name": item["name"], **at},
        ]
    added = {"type": "response.output_item.added", "output_index": index, "item": begun}
    return [added, *inner, {"type": "response.output_item.done", "output_index": index, "item": item}]


def _lines(events: Sequence[Item]) -> Iterator[str]:
    for number, event in enumerate(events):
        yield f"event: {event['type']}\ndata: {json.dumps(event | {'sequence_number': number})}\n\n"
