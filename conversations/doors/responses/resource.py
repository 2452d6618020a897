"""The response as clients see it: all of its 31 fields, always, made from what was asked and what the record says came
of it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from conversations.actions.responses import Received
from conversations.log.events import Stored
from conversations.responses import Json

ENDS = ("run.done", "run.failed", "run.cancelled", "run.interrupted", "run.incompatible")
DEFAULTS: Json = {
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "temperature": 1.0,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "background": False,
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
}


class Told(msgspec.Struct):
    """What is read of a `response.completed`, and of a run's end."""

    status: str = "failed"
    output: list[Any] = []
    usage: Json | None = None
    error: Any = None
    incomplete_details: Json | None = None
    model: str = ""
    reason: str | None = None


_told = msgspec.json.Decoder(Told)


def ending(received: Received, event: Stored) -> Json | None:
    """Answer the response that an event of its run ends; None for an event that ends nothing.

    What the worker stored (`response.completed`) is the truth; a run that ended without it has failed.
    """
    if event.run != received.run:
        return None
    if event.kind == "response.completed":
        return _completed(received, _told.decode(event.body), event.at)
    if event.kind in ENDS:
        told = _told.decode(event.body)
        word = event.kind.removeprefix("run.")
        message = f"the run was {word}" if word in ("cancelled", "interrupted") else "the run failed"
        code = word if word != "done" else "server_error"
        error = {"code": code if word != "failed" else "server_error", "message": _said(message, told.reason)}
        return resource(received, "failed", error=error)
    return None


def _completed(received: Received, told: Told, at: int) -> Json:
    status, error = told.status, told.error
    if status == "cancelled":  # no status of the specification
        status, error = "failed", error or {"code": "cancelled", "message": "the run was cancelled"}
    if status == "failed" and not error:
        error = {"code": "server_error", "message": "the run failed"}
    return resource(
        received,
        status,
        output=told.output,
        error=error,
        incomplete=told.incomplete_details,
        usage=told.usage,
        completed_at=at // 1_000_000 if status == "completed" else None,
        model=told.model,
    )


def resource(
    received: Received,
    status: str,
    *,
    output: Sequence[Any] = (),
    error: Any = None,
    incomplete: Json | None = None,
    usage: Json | None = None,
    completed_at: int | None = None,
    model: str = "",
) -> Json:
    """Make it. Times are whole seconds UTC."""
    asked = received.body
    params: Json = asked["params"]
    tier = params.get("service_tier")
    return {
        "id": received.response,
        "object": "response",
        "created_at": received.at // 1_000_000,
        "completed_at": completed_at,
        "status": status,
        "incomplete_details": incomplete,
        "model": model or asked["model"],
        "previous_response_id": asked["previous_response_id"],
        "instructions": asked["instructions"],
        "output": list(output),
        "error": error,
        "tools": [tool for tool in asked["tools"] if tool["type"] == "function"],
        "tool_choice": _choice(asked["tool_choice"], asked["allowed_tools"]),
        "text": _text(params.get("text")),
        "reasoning": _reasoning(params.get("reasoning")),
        "usage": usage,
        "store": asked["store"],
        "service_tier": tier if tier not in (None, "auto") else "default",
        **{name: params.get(name, default) for name, default in DEFAULTS.items()},
    }


def _choice(choice: Any, allowed: Sequence[str] | None) -> Any:
    if allowed is None or isinstance(choice, dict):
        return choice
    return {"type": "allowed_tools", "mode": choice, "tools": [{"type": "function", "name": name} for name in allowed]}


def _text(given: Json | None) -> Json:
    """Answer how the answer is to look. The document of 2026-04-24 wants a schema's place, and null in it."""
    told = given or {}
    form = told.get("format") or {"type": "text"}
    if form["type"] == "json_schema":
        kept = {"name": form["name"], "description": form.get("description"), "strict": form.get("strict") is True}
        form = {"type": "json_schema", **kept, "schema": None}
    verbosity = told.get("verbosity")
    return {"format": form} | ({"verbosity": verbosity} if verbosity else {})


def _reasoning(given: Json | None) -> Json | None:
    return None if given is None else {"effort": given.get("effort"), "summary": given.get("summary")}


def _said(message: str, reason: str | None) -> str:
    return f"{message}: {reason[:300]}" if reason else message
