"""The built-in model for a start without a server: a real SDK model, deterministic, in several pieces, labelled.

What it does is decided in `decisions`; here its steps become the SDK's items and stream events.
"""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

from agents import AgentOutputSchemaBase, Handoff, Model, ModelResponse, ModelSettings, Tool, Usage
from agents.items import TResponseInputItem, TResponseOutputItem, TResponseStreamEvent
from openai.types import responses as r
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from agents_app.demo.decisions import DemoCall, DemoOffer, Say, decide

Given = str | list[TResponseInputItem]
Schema = AgentOutputSchemaBase | None
Handoffs = list[Handoff[Any, Any]]

PIECES = 60  # at most this many pieces of text an answer


class DemoModel(Model):
    """Answers by rules. It has no state between calls, so one serves any number of runs; `pace_s`: seconds between
    pieces.

    Only the parameters that it uses are typed.
    """

    label = "demo model"

    def __init__(self, *, pace_s: float = 0.0) -> None:
        self.pace_s = pace_s

    async def get_response(
        self, system_instructions: Any, input: Given, model_settings: Any, tools: list[Tool], output_schema: Schema,
        handoffs: Handoffs, tracing: Any, **ids: Any,
    ) -> ModelResponse:  # fmt: skip
        """Return the whole answer."""
        item = _item(_step(input, tools, output_schema, handoffs, model_settings))
        spent = _spent(input, item)
        usage = Usage(
            requests=1,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            total_tokens=spent.total_tokens,
        )
        return ModelResponse(output=[item], usage=usage, response_id=_id("resp"))

    async def stream_response(
        self, system_instructions: Any, input: Given, model_settings: Any, tools: list[Tool], output_schema: Schema,
        handoffs: Handoffs, tracing: Any, **ids: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:  # fmt: skip
        """Yield the answer in pieces, with the events in a server's order."""
        item = _item(_step(input, tools, output_schema, handoffs, model_settings))
        for number, event in enumerate(_events(item, _spent(input, item))):
            if self.pace_s and event.type == "response.output_text.delta":
                await asyncio.sleep(self.pace_s)
            elif number % 16 == 15:
                await asyncio.sleep(0)
            yield event


def _step(
    input: Given, tools: list[Tool], output_schema: Schema, handoffs: Handoffs, settings: ModelSettings
) -> Say | DemoCall:
    items = [{"role": "user", "content": input}] if isinstance(input, str) else input
    schema = None if output_schema is None or output_schema.is_plain_text() else output_schema.json_schema()
    choice = settings.tool_choice if isinstance(settings.tool_choice, str) else "auto"
    step = decide(DemoOffer(items, tools, handoffs, schema, choice))
    if isinstance(step, Say) and settings.max_tokens is not None:
        cut = re.match(rf"(?:\s*\S+){{0,{settings.max_tokens}}}", step.text)
        return Say(cut[0] if cut else "")
    return step


def _item(step: Say | DemoCall) -> TResponseOutputItem:
    if isinstance(step, DemoCall):
        return r.ResponseFunctionToolCall(
            id=_id("fc"),
            call_id=_id("call"),
            name=step.name,
            arguments=json.dumps(step.arguments, ensure_ascii=False),
            type="function_call",
            status="completed",
        )
    text = r.ResponseOutputText(text=step.text, type="output_text", annotations=[], logprobs=[])
    return r.ResponseOutputMessage(id=_id("msg"), content=[text], role="assistant", status="completed", type="message")


def _events(item: TResponseOutputItem, spent: r.ResponseUsage) -> list[TResponseStreamEvent]:
    """Return the stream events of an answer of one item."""
    response = r.Response(
        id=_id("resp"),
        created_at=time.time(),
        model=DemoModel.label,
        object="response",
        output=[],
        parallel_tool_calls=False,
        tool_choice="auto",
        tools=[],
        status="in_progress",
    )
    whole = response.model_copy(update={"output": [item], "status": "completed", "usage": spent})
    inner = _call_events(item) if isinstance(item, r.ResponseFunctionToolCall) else _text_events(item)
    events: list[Any] = [
        r.ResponseCreatedEvent(response=response, sequence_number=0, type="response.created"),
        r.ResponseInProgressEvent(response=response, sequence_number=0, type="response.in_progress"),
        *inner,
        r.ResponseOutputItemDoneEvent(item=item, output_index=0, sequence_number=0, type="response.output_item.done"),
        r.ResponseCompletedEvent(response=whole, sequence_number=0, type="response.completed"),
    ]
    for number, event in enumerate(events):
        event.sequence_number = number
    return events


def _call_events(item: r.ResponseFunctionToolCall) -> list[Any]:
    begun = item.model_copy(update={"arguments": "", "status": "in_progress"})
    at: dict[str, Any] = {"item_id": item.id, "output_index": 0, "sequence_number": 0}
    return [
        r.ResponseOutputItemAddedEvent(
            item=begun, output_index=0, sequence_number=0, type="response.output_item.added"
        ),
        *(
            r.ResponseFunctionCallArgumentsDeltaEvent(delta=piece, type="response.function_call_arguments.delta", **at)
            for piece in _pieces(item.arguments)
        ),
        r.ResponseFunctionCallArgumentsDoneEvent(
            arguments=item.arguments, type="response.function_call_arguments.done", **at
        ),
    ]


def _text_events(item: Any) -> list[Any]:
    text = item.content[0]
    begun = item.model_copy(update={"content": [], "status": "in_progress"})
    at: dict[str, Any] = {"item_id": item.id, "output_index": 0, "content_index": 0, "sequence_number": 0}
    empty = text.model_copy(update={"text": ""})
    return [
        r.ResponseOutputItemAddedEvent(
            item=begun, output_index=0, sequence_number=0, type="response.output_item.added"
        ),
        r.ResponseContentPartAddedEvent(part=empty, type="response.content_part.added", **at),
        *(
            r.ResponseTextDeltaEvent(delta=piece, logprobs=[], type="response.output_text.delta", **at)
            for piece in _pieces(text.text)
        ),
        r.ResponseTextDoneEvent(text=text.text, logprobs=[], type="response.output_text.done", **at),
        r.ResponseContentPartDoneEvent(part=text, type="response.content_part.done", **at),
    ]


def _pieces(text: str) -> list[str]:
    """Split a text at its spaces into some pieces, which together are the text."""
    chunks = re.findall(r"\s*\S+\s*?|\s+$", text) or [text]
    size = max(1, -(-len(chunks) // PIECES))
    return ["".join(chunks[n : n + size]) for n in range(0, len(chunks), size)]


def _spent(input: Given, item: TResponseOutputItem) -> r.ResponseUsage:
    """Return the usage: words count as tokens, since the demo model has none."""
    content = item.content[0] if isinstance(item, r.ResponseOutputMessage) else None
    output_text = content.text if isinstance(content, r.ResponseOutputText) else item.model_dump_json()
    input_words, output_words = len(str(input).split()), len(output_text.split())
    return r.ResponseUsage(
        input_tokens=input_words,
        input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
        output_tokens=output_words,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        total_tokens=input_words + output_words,
    )


def _id(kind: str) -> str:
    """Return a unique id: call ids must not repeat in a run, or in earlier ones."""
    return f"{kind}_{uuid4().hex}"
