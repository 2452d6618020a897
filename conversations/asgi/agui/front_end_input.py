"""Parse a `RunAgentInput` and convert it to a request like those of `/v1/responses`. Sync.

A client sends its whole history each time. Messages that this thread already contains are not recorded again: the
newest answer from here in the history names the response that the later messages continue. A history without such an
answer, or with one that cannot be continued, is used completely, as a new beginning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, get_args

from ag_ui.core import AssistantMessage, Message, ResumeEntry, Role, RunAgentInput, ToolMessage, UserMessage
from pydantic import ValidationError

from conversations.asgi.responses import parse_request
from conversations.core.errors import Invalid, as_predicate
from conversations.events.recorded_arguments import call_id_of
from conversations.events.response_ids import CONTINUABLE, ResponseRequest
from conversations.models import Response, ToolCall
from conversations.runs.responses import create

Item = dict[str, Any]
_OURS = re.compile(r"(resp_[0-9a-f]{32})\..+", re.DOTALL)  # the id of a message that `run_encoder` made
_NEVER_SENT = ("activity", "reasoning")
_TAGS = {*get_args(Role), "text", "image", "audio", "video", "document"}  # of messages and of their parts
_TYPES = ("str", "list")


class FrontEndInput(NamedTuple):
    """A requested run: its thread, its id, and how it continues an interrupted one."""

    thread: str
    run: str
    resume: list[ResumeEntry]
    whole: RunAgentInput


class _History(NamedTuple):
    """The messages to continue with. `after`: the response that they follow; `of_thread`: the newest of the thread."""

    messages: list[Message]
    after: str | None = None
    of_thread: bool = False


def read(body: bytes) -> FrontEndInput:
    """Parse the body of a request. Raises Invalid with the field, TooLarge."""
    value = parse_request.value_of(body)
    try:
        whole = RunAgentInput.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Invalid(as_predicate(str(first["msg"])), field=_path(first["loc"])) from None
    except RecursionError:
        raise Invalid("the request is nested too deeply", code="invalid_json") from None
    parse_request.check_conversation(whole.thread_id, "threadId")
    parse_request.check_conversation(whole.run_id, "runId")
    return FrontEndInput(whole.thread_id, whole.run_id, list(whole.resume or ()), whole)


def request_of(agent: str, request: FrontEndInput) -> ResponseRequest:
    """Convert it to the request of a response. Raises Invalid if it contains nothing new, or does not fit."""
    history = _history(request.thread, request.whole.messages)
    items = _items(request.thread, history.messages)
    if not items:
        raise Invalid("must end with a message that this thread has not answered yet", field="messages")
    body: dict[str, Any] = {"model": agent, "input": items, "stream": True, "instructions": _context(request.whole)}
    body["tools"] = [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters or None}
        for tool in request.whole.tools or ()
    ]
    body["metadata"] = {"conversation_id": request.thread, "agui_run_id": request.run}
    body |= {"previous_response_id": history.after} if history.after else {}
    body |= {"conversation": request.thread} if history.of_thread else {}
    return parse_request.parse_body(body)


def _history(thread: str, messages: Sequence[Message]) -> _History:
    """Return the new messages of a history."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if not isinstance(message, AssistantMessage) or (ours := _OURS.fullmatch(message.id)) is None:
            continue
        row = Response.objects.filter(id=ours[1], conversation__key=thread, store=True).first()
        new = [later for later in messages[index + 1 :] if _OURS.fullmatch(later.id) is None]
        if row is not None and row.status in CONTINUABLE:
            return _History(new, after=row.id)
        newest = create.remembered(thread)
        if row is not None and newest is not None and newest.id == row.id:  # still under way
            return _History(new, of_thread=True)
        break
    return _History(list(messages))


def _items(thread: str, messages: Iterable[Message]) -> list[Item]:
    shown = [message for message in messages if message.role not in _NEVER_SENT]
    names = [call.id for message in shown if isinstance(message, AssistantMessage) for call in message.tool_calls or ()]
    names += [message.tool_call_id for message in shown if isinstance(message, ToolMessage)]
    calls = ToolCall.objects.filter(id__in=[name for name in names if "\0" not in name], conversation__key=thread)
    known = {call.id: call_id_of(call) or call.id for call in calls} if names else {}
    return [item for message in shown for item in _items_of(message, known)]


def _items_of(message: Message, known: dict[str, str]) -> list[Item]:
    if isinstance(message, ToolMessage):
        text = _text(message.content) or (f"The tool failed: {message.error}" if message.error else "")
        call = known.get(message.tool_call_id, message.tool_call_id)
        return [{"type": "function_call_output", "call_id": call, "output": text}]
    if isinstance(message, AssistantMessage):
        items: list[Item] = [{"role": "assistant", "content": message.content}] if message.content else []
        items += [
            {
                "type": "function_call", "call_id": known.get(call.id, call.id), "name": call.function.name,
                "arguments": call.function.arguments,
            }
            for call in message.tool_calls or ()
        ]  # fmt: skip
        return items
    if isinstance(message, UserMessage):
        return [{"type": "message", "id": message.id, "role": "user", "content": _parts(message.content)}]
    return [{"role": message.role, "content": str(message.content)}]


def _parts(content: str | list[Any]) -> str | list[Item]:
    """Return a person's input: text, and images as a URL or as data; models here get no other media."""
    if isinstance(content, str):
        return content
    parts: list[Item] = []
    for part in content:
        if part.type == "text":
            parts.append({"type": "input_text", "text": part.text})
        elif part.type == "image" and part.source.type in ("data", "url"):
            source = part.source
            url = source.value if source.type == "url" else f"data:{source.mime_type};base64,{source.value}"
            parts.append({"type": "input_image", "image_url": url})
    return parts


def _text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text for part in content if part.type == "text")


def _context(request: RunAgentInput) -> str | None:
    """Return the front end's context for the model as text, with the initial state, if any."""
    lines = [f"{entry.description}: {entry.value}" for entry in request.context or ()]
    if request.state not in (None, {}, [], ""):
        lines.append(f"State of the application: {json.dumps(request.state, ensure_ascii=False)}")
    return "\n".join(lines) or None


def _path(location: Sequence[object]) -> str:
    """Return the location of an error, such as `messages[0].content`, without the tags and types of unions."""
    path = ""
    for before, step in zip(("", *location), location, strict=False):
        if isinstance(step, int):
            path += f"[{step}]"
        elif not (isinstance(before, int) and step in _TAGS) and str(step).partition("[")[0] not in _TYPES:
            path += f".{step}" if path else str(step)
    return path[:200]
