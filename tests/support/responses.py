"""What the responses door writes for a request, for tests of the worker's side; and what came of it."""

import json
from typing import Any

from conversations.core import principals
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.events.response_ids import new_response_id
from conversations.models import Conversation, Event, Response

ASKER = principals.token_principal("script")


def user(text: str) -> dict[str, Any]:
    """Make a message of a user's."""
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def returned(call: dict[str, Any], output: Any) -> dict[str, Any]:
    """Make the answer to a function call."""
    return {"type": "function_call_output", "call_id": call["call_id"], "output": output}


def function(name: str, **properties: Any) -> dict[str, Any]:
    """Make a tool of a client's."""
    schema = {"type": "object", "properties": properties or {"city": {"type": "string"}}, "required": []}
    return {"type": "function", "name": name, "description": f"Do {name}.", "parameters": schema}


def ask(given: str | list[Any] = "hello", *, agent: str = "Clerk", previous: str | None = None, **more: Any) -> str:
    """Ask for a response as the door does; return its id. `more`: model, tools, tool_choice, allowed_tools, params,
    instructions, key (of the conversation), store, stream."""
    response, run = new_response_id(), new_id()
    before = Response.objects.filter(id=previous).first()
    key = more.pop("key", None) or (before.conversation.key if before else response)
    received = {"event": "response.received", "id": new_id(), "response_id": response, "agent": agent, "model": agent}
    received |= {"previous_response_id": previous, "input": [user(given)] if isinstance(given, str) else given}
    received |= {"instructions": None, "tools": [], "tool_choice": "auto", "allowed_tools": None, "params": {}}
    received |= {"sender": str(ASKER), "recipient": f"agent:{agent}", "store": True, "stream": False, **more}
    queued = {"event": "run.queued", "id": new_id(), "run_id": run, "agent": agent, "run_kind": "agent"}
    queued |= {"response_id": response, "previous_response_id": previous, "store": received["store"], "socket": ""}
    with log.write_transaction():
        head = Conversation.objects.select_for_update().filter(key=key).values_list("head_seq", flat=True).first() or 0
        queued["input_seq"] = head + 1
        log.append([log.from_internal(key, received, ASKER), log.from_internal(key, queued, SYSTEM)])
    return response


def answer(response: str) -> dict[str, Any]:
    """Return the body of a response's end."""
    row = Response.objects.get(id=response)
    body = Event.objects.values_list("body", flat=True).get(conversation=row.conversation_id, seq=row.out_seq)
    parsed: dict[str, Any] = json.loads(body)
    return parsed


def words(response: dict[str, Any]) -> list[str]:
    """Return the texts of an answer."""
    return [part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"]]


def calls(response: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the function calls of an answer."""
    return [item for item in response["output"] if item["type"] == "function_call"]
