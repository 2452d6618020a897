"""An answer as the SDK's stream of it: opened with its first word, closed with the whole. For the models that are made
here: the demo's, and remote agents. No Django."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from openai.types import responses as r
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

Events = list[Any]  # the SDK's, of a dozen types


class AnswerEvents:
    """Makes the events of one answer: a message, then calls."""

    def __init__(self, model: str) -> None:
        self._number = 0
        self._pieces: list[str] = []
        self._message = f"msg_{uuid4().hex}"
        self._response = r.Response(
            id=f"resp_{uuid4().hex}", created_at=time.time(), model=model, object="response", output=[],
            parallel_tool_calls=True, tool_choice="auto", tools=[], status="in_progress",
        )  # fmt: skip

    def begin(self) -> Events:
        """Open the answer."""
        return self._numbered([
            r.ResponseCreatedEvent(response=self._response, sequence_number=0, type="response.created"),
            r.ResponseInProgressEvent(response=self._response, sequence_number=0, type="response.in_progress"),
        ])  # fmt: skip

    def say(self, text: str) -> Events:
        """Stream a piece of the message."""
        opening = [] if self._pieces else self._opening()
        self._pieces.append(text)
        delta = r.ResponseTextDeltaEvent(delta=text, logprobs=[], type="response.output_text.delta", **self._at)
        return self._numbered([*opening, delta])

    def end(self, calls: Iterable[tuple[str, dict[str, Any]]], usage: tuple[int, int] | None) -> Events:
        """Close the message, make the calls (name, arguments) and end the answer."""
        output: list[Any] = []
        events: Events = []
        if self._pieces:
            part, message = self._part("".join(self._pieces)), self._item("completed", "".join(self._pieces))
            events += [
                r.ResponseTextDoneEvent(text=part.text, logprobs=[], type="response.output_text.done", **self._at),
                r.ResponseContentPartDoneEvent(part=part, type="response.content_part.done", **self._at),
                _done(message, 0),
            ]
            output.append(message)
        for name, arguments in calls:
            call = _call(name, arguments)
            events += _call_events(call, len(output))
            output.append(call)
        fields = {"output": output, "status": "completed", "usage": _usage(usage)}
        whole = self._response.model_copy(update=fields)
        last = r.ResponseCompletedEvent(response=whole, sequence_number=0, type="response.completed")
        return self._numbered([*events, last])

    @property
    def _at(self) -> dict[str, Any]:
        return {"item_id": self._message, "output_index": 0, "content_index": 0, "sequence_number": 0}

    def _opening(self) -> Events:
        added = r.ResponseOutputItemAddedEvent(
            item=self._item("in_progress", None), output_index=0, sequence_number=0, type="response.output_item.added"
        )
        empty = self._part("")
        return [added, r.ResponseContentPartAddedEvent(part=empty, type="response.content_part.added", **self._at)]

    def _item(self, status: Any, text: str | None) -> r.ResponseOutputMessage:
        content: list[Any] = [] if text is None else [self._part(text)]
        return r.ResponseOutputMessage(
            id=self._message, content=content, role="assistant", status=status, type="message"
        )

    @staticmethod
    def _part(text: str) -> r.ResponseOutputText:
        return r.ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])

    def _numbered(self, events: Events) -> Events:
        for event in events:
            event.sequence_number = self._number
            self._number += 1
        return events


def _call(name: str, arguments: dict[str, Any]) -> r.ResponseFunctionToolCall:
    text = json.dumps(arguments, ensure_ascii=False)
    call_id = f"call_{uuid4().hex}"
    return r.ResponseFunctionToolCall(
        id=f"fc_{uuid4().hex}", call_id=call_id, name=name, arguments=text, type="function_call", status="completed"
    )


def _call_events(call: r.ResponseFunctionToolCall, index: int) -> Events:
    at: dict[str, Any] = {"item_id": call.id, "output_index": index, "sequence_number": 0}
    begun = call.model_copy(update={"arguments": "", "status": "in_progress"})
    return [
        r.ResponseOutputItemAddedEvent(
            item=begun, output_index=index, sequence_number=0, type="response.output_item.added"
        ),
        r.ResponseFunctionCallArgumentsDeltaEvent(
            delta=call.arguments, type="response.function_call_arguments.delta", **at
        ),
        r.ResponseFunctionCallArgumentsDoneEvent(
            arguments=call.arguments, type="response.function_call_arguments.done", **at
        ),
        _done(call, index),
    ]


def _done(item: Any, index: int) -> Any:
    return r.ResponseOutputItemDoneEvent(
        item=item, output_index=index, sequence_number=0, type="response.output_item.done"
    )


def _usage(spent: tuple[int, int] | None) -> r.ResponseUsage | None:
    if spent is None:
        return None
    return r.ResponseUsage(
        input_tokens=spent[0],
        input_tokens_details=InputTokensDetails(cached_tokens=0, cache_write_tokens=0),
        output_tokens=spent[1],
        output_tokens_details=OutputTokensDetails(reasoning_tokens=0),
        total_tokens=sum(spent),
    )
