"""The built-in model for a start without a server: a real SDK model, deterministic, in several pieces, labelled.

What it does is decided in `decisions`; here its steps become the SDK's stream events.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from agents import AgentOutputSchemaBase, Handoff, Model, ModelResponse, ModelSettings, Tool, Usage
from agents.items import TResponseInputItem, TResponseStreamEvent

from agents_app.answer_events import AnswerEvents, Events
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
        response = _events(input, _step(input, tools, output_schema, handoffs, model_settings))[-1].response
        spent = response.usage
        usage = Usage(
            requests=1,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            total_tokens=spent.total_tokens,
        )
        return ModelResponse(output=response.output, usage=usage, response_id=response.id)

    async def stream_response(
        self, system_instructions: Any, input: Given, model_settings: Any, tools: list[Tool], output_schema: Schema,
        handoffs: Handoffs, tracing: Any, **ids: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:  # fmt: skip
        """Yield the answer in pieces, with the events in a server's order."""
        for number, event in enumerate(_events(input, _step(input, tools, output_schema, handoffs, model_settings))):
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


def _events(input: Given, step: Say | DemoCall) -> Events:
    """Return the stream events of a step. Words count as tokens, since the demo model has none."""
    text = json.dumps(step.arguments, ensure_ascii=False) if isinstance(step, DemoCall) else step.text
    answer = AnswerEvents(DemoModel.label)
    events = answer.begin()
    for piece in _pieces(text) if isinstance(step, Say) else ():
        events += answer.say(piece)
    calls = [(step.name, step.arguments)] if isinstance(step, DemoCall) else []
    return events + answer.end(calls, (len(str(input).split()), len(text.split())))


def _pieces(text: str) -> list[str]:
    """Split a text at its spaces into some pieces, which together are the text."""
    chunks = re.findall(r"\s*\S+\s*?|\s+$", text) or [text]
    size = max(1, -(-len(chunks) // PIECES))
    return ["".join(chunks[n : n + size]) for n in range(0, len(chunks), size)]
