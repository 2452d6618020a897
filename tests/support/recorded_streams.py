"""The recorded bodies of providers' streams, read without the project and without the SDK. For tests of models."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agents import FunctionTool
from django.conf import settings

RECORDED = sorted(Path(settings.SAMPLES_DIR).glob("streams-*/sse/*.response.sse"))
needs_recordings = pytest.mark.skipif(not RECORDED, reason="no streams-* in SWITCHBOARD_SAMPLES_DIR")
CUT = (  # one of each kind: text and a tool call by Chat Completions, both by Responses
    "test_complex_agent_run.02",
    "test_tools_streaming_variant_a.00",
    "test_openai_responses_stream.00",
    "test_openai_responses_stream.01",
)


class Told(NamedTuple):
    """What an answer says."""

    text: str
    calls: list[tuple[str, str]]
    tokens: tuple[int, int] | None


def body_of(name: str) -> bytes:
    """Return the recording whose file begins with this name."""
    return next(path for path in RECORDED if path.name.startswith(name)).read_bytes()


def recorded(body: bytes) -> Told:
    """Read what a recording says."""
    frames = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: {")]
    if "choices" not in frames[0]:
        return _recorded_responses(frames)
    text, calls, tokens = "", {}, None
    for chunk in frames:
        if usage := chunk.get("usage"):
            tokens = (usage["prompt_tokens"], usage["completion_tokens"])
        for delta in (choice["delta"] for choice in chunk["choices"]):
            text += delta.get("content") or ""
            for call in delta.get("tool_calls") or ():
                name, arguments = calls.get(call["index"], ("", ""))
                function = call["function"]
                calls[call["index"]] = (
                    name or function.get("name") or "",
                    arguments + (function.get("arguments") or ""),
                )
    return Told(text, list(calls.values()), tokens)


def _recorded_responses(frames: list[dict[str, Any]]) -> Told:
    text = "".join(event["delta"] for event in frames if event["type"] == "response.output_text.delta")
    final = frames[-1]["response"]
    calls = [(item["name"], item["arguments"]) for item in final["output"] if item["type"] == "function_call"]
    return Told(text, calls, (final["usage"]["input_tokens"], final["usage"]["output_tokens"]))


def has_refused_calls(path: Path) -> bool:
    """Return whether the SDK's runner refuses the answer: it carries out no tool searches of the client's."""
    return "client_tool_search" in path.name


def api_of(body: bytes, model: str = "m") -> str:
    """Name a model by the API that a recording is of."""
    return f"responses:{model}" if b"response.created" in body else f"chat:{model}"


def tools_of(body: bytes) -> list[FunctionTool]:
    """Make the tools that a recording calls; each answers `done`."""

    async def invoke(_ctx: object, arguments: str) -> str:
        return "done"

    names = {name for name, _ in recorded(body).calls}
    schema = {"type": "object", "properties": {}}
    return [FunctionTool(name, "", schema, invoke, strict_json_schema=False) for name in names]


def places_of(body: bytes, steps: int | None) -> list[int]:
    """Return `steps` places to cut it (None: after every byte), all before its end mark."""
    whole = body.rindex(b"[DONE]") if b"[DONE]" in body else len(body.rstrip()) - 1
    return sorted({0, 1, whole - 1, whole, *(range(whole) if steps is None else _spread(whole, steps))})


def _spread(whole: int, steps: int) -> Iterator[int]:
    return (whole * step // steps for step in range(steps))
