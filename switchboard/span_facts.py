"""What is read of the Agents SDK's spans while a program runs: references and a few copies, no JSON. Called within the
program's own run by `agent_watch`, so each function here is a few microseconds.

The spans are known by their `type` and their fields alone: nothing of the SDK is imported.
"""

from __future__ import annotations

import json
import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, NamedTuple

LEAVES = frozenset({"response", "generation", "handoff", "mcp_tools"})  # nothing is inside them; only their end counts
MAX_TEXT = 150_000  # characters of a text that is sent on
MAX_JSON = 450_000  # bytes of such a text as JSON, of which an event has two
MAX_NUMBER = 1 << 63  # of an integer that is sent on as it is
MAX_CONTAINERS = 40  # lists and objects in a value that is sent on as JSON; with more, it is sent as text
CONTAINERS = (list, tuple, dict)  # as JSON has them
_encoder = json.JSONEncoder(default=str)


class SpanFacts(NamedTuple):
    """A span that began or ended. `detail` depends on `kind`; `size` is about how many bytes it keeps alive."""

    is_end: bool
    kind: str
    trace_id: str
    span_id: str
    parent_id: str | None
    at: float  # seconds since the epoch
    detail: Any = None  # of any kind of span, as the reader of that kind made it
    error: Any = None  # the SDK's {"message", "data"}
    size: int = 200


class ModelAnswer(NamedTuple):
    """What one call of a model was given that is new, and what it gave."""

    model: str
    inputs: list[str]  # of people: what stands at the end of the input
    output: Sequence[Any]  # items of the Responses API, as objects or as JSON
    usage: Any


def of_start(span: Any, at: float) -> SpanFacts | None:
    """Read a span that begins; None for one that nothing can be inside of."""
    data = span.span_data
    if data.type in LEAVES:
        return None
    return SpanFacts(False, data.type, span.trace_id, span.span_id, span.parent_id, at, data)


def of_end(span: Any, at: float, *, began_in: int | None = None) -> SpanFacts:
    """Read a span that ended. `began_in`: the id of the exception that was handled when it began."""
    data = span.span_data
    kind = data.type
    read = _READERS.get(kind)
    detail, size = read(data) if read else (data, 200)
    error = span.error
    if not error and (cause := cancellation(kind)) is not None and id(cause) != began_in:
        error = {"message": f"It was cancelled ({type(cause).__name__}).", "data": None, "is_cancelled": True}
    return SpanFacts(True, kind, span.trace_id, span.span_id, span.parent_id, at, detail, error, size)


def cancellation(kind: str) -> BaseException | None:
    """Return what cancels a span of this kind that ends now: the SDK records no error of a cancelled task, Ctrl-C or
    `sys.exit`. None for an answer that is read no further, which may be complete."""
    error = sys.exc_info()[1]
    is_read = isinstance(error, GeneratorExit) and kind in LEAVES
    return None if isinstance(error, Exception) or is_read else error


def field(item: Any, name: str, default: Any = None) -> Any:
    """Read a field of what the SDK gives as an object or as JSON."""
    return item.get(name, default) if isinstance(item, dict) else getattr(item, name, default)


def texts(content: Any) -> Iterable[str]:
    """Read what a message says: its text, or its parts."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | tuple):
        for part in content:
            text = field(part, "text")
            if isinstance(text, str):
                yield text
            elif (kind := field(part, "type")) and kind != "refusal":
                yield f"[{str(kind).removeprefix('input_')}]"


def clipped(text: str) -> str:
    """Return a text, or as much of it as an event has room for. Called when it is sent, outside the run."""
    part = text[:MAX_TEXT]
    if len(quoted(part)) > MAX_JSON:
        too_long = bisect_right(range(MAX_TEXT), MAX_JSON, key=lambda length: len(quoted(part[:length])))
        part = part[: too_long - 1]
    return text if len(part) == len(text) else f"{part}… ({len(text):,} characters)"


def _response(data: Any) -> tuple[ModelAnswer, int]:
    response = data.response
    output = list(field(response, "output") or ()) if response is not None else []
    answer = ModelAnswer(str(field(response, "model") or ""), _newest_inputs(data.input), output, data.usage)
    return answer, _size(answer)


def _generation(data: Any) -> tuple[ModelAnswer, int]:
    """Read a call of Chat Completions: the SDK of today gives the answer in the form of the Responses API, others the
    bare message."""
    output: list[Any] = []
    for item in data.output or ():
        output += field(item, "output") or [item]
    answer = ModelAnswer(str(data.model or ""), _newest_inputs(data.input), output, data.usage)
    return answer, _size(answer)


def _function(data: Any) -> tuple[tuple[str, str | None, Any, str | None], int]:
    output = _plain(data.output)
    server = (data.mcp_data or {}).get("server")
    size = len(data.input or "") + (len(output) if isinstance(output, str) else 1000)
    return (data.name, data.input, output, server), 200 + size


def _handoff(data: Any) -> tuple[tuple[str, str], int]:
    return (data.from_agent or "", data.to_agent or ""), 200


def _guardrail(data: Any) -> tuple[tuple[str, bool], int]:
    return (data.name, data.triggered), 200


_READERS = {
    "response": _response,
    "generation": _generation,
    "function": _function,
    "handoff": _handoff,
    "guardrail": _guardrail,
}


def _newest_inputs(items: Any) -> list[str]:
    """Return what people say at the end of a model's input: all before is a history that was recorded before."""
    if isinstance(items, str):
        return [items]
    newest: list[str] = []
    for item in reversed(items if isinstance(items, list | tuple) else ()):
        if field(item, "role") != "user":
            break
        newest.append("\n".join(texts(field(item, "content"))))
    return newest[::-1]


def _size(answer: ModelAnswer) -> int:
    size = 400 + sum(map(len, answer.inputs))
    for item in answer.output:  # an object that lacks a field takes long to say so
        if field(item, "type") == "function_call":
            size += 200 + len(field(item, "arguments") or "")
        else:
            size += 200 + sum(map(len, texts(field(item, "content"))))
    return size


def _plain(value: Any) -> Any:
    """Return a value that the program can no longer change, and that is JSON: a tool's output may be anything."""
    if value is None or isinstance(value, str) or (isinstance(value, int) and -MAX_NUMBER <= value < MAX_NUMBER):
        return value
    try:
        text = _json(value)
        if len(text) == MAX_TEXT or text.count("[") + text.count("{") > MAX_CONTAINERS:
            return text
        return json.loads(text, parse_constant=_refuse)
    except Exception:  # it is of the program
        return _text(value)


def _json(value: Any) -> str:
    """Write a value as JSON as far as it is sent: `MAX_TEXT` characters. Raises what the value raises."""
    if _fits(value):
        text = _encoder.encode(value)
        return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
    pieces: list[str] = []
    length = 0
    for piece in _encoder.iterencode(value):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_TEXT:
            return "".join(pieces)[: MAX_TEXT - 1] + "…"
    return "".join(pieces)


def _fits(value: Any) -> bool:
    """Return whether a value has few enough items that its JSON may be sent whole: each is three characters or more."""
    room, containers = MAX_TEXT // 3, [value] if isinstance(value, CONTAINERS) else []
    while containers and room >= 0:
        container = containers.pop()
        room -= len(container)
        if room >= 0:
            items = container.values() if isinstance(container, dict) else container
            containers += [item for item in items if isinstance(item, CONTAINERS)]
    return room >= 0


def _text(value: Any) -> str:
    """Return the text of a value that is not JSON."""
    try:
        return str(value)[:MAX_TEXT]
    except Exception:
        return f"<{type(value).__name__} without a text>"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
