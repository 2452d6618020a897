"""Build the response object that clients receive: always with all of its 31 fields, from the request and the record."""

from collections.abc import Sequence
from typing import Any

import msgspec

from conversations.events import registry
from conversations.events.log.records import Stored
from conversations.events.response_ids import Json
from conversations.runs.responses.create import Received

ENDS = registry.run_ends()
DEFAULTS: Json = {
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "temperature": 1.0,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "background": False,
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
}


class CompletedFields(msgspec.Struct):
    """The fields that are read of a `response.completed`, and of a run's end."""

    status: str = "failed"
    output: list[Any] = []
    usage: Json | None = None
    error: Any = None
    incomplete_details: Json | None = None
    model: str = ""
    reason: str | None = None


_told = msgspec.json.Decoder(CompletedFields)


def ending(received: Received, event: Stored) -> Json | None:
    """Return the response that an event of its run completes; None if the event does not complete it.

    What the worker stored (`response.completed`) is authoritative; a run that ended without it has failed.
    """
    if event.run != received.run:
        return None
    if event.kind == "response.completed":
        return _completed(received, _told.decode(event.body), event.at)
    if event.kind in ENDS:
        fields = _told.decode(event.body)
        word = event.kind.removeprefix("run.")
        message = f"the run was {word}" if word in ("cancelled", "interrupted") else "the run failed"
        code = word if word != "done" else "server_error"
        error = {
            "code": code if word != "failed" else "server_error",
            "message": _error_message(message, fields.reason),
        }
        return resource(received, "failed", error=error)
    return None


def cancelled(ended: Json) -> Json:
    """Return the end of a cancelled run as a request by id expects it; the streaming specification has no such
    status."""
    if (ended["error"] or {}).get("code") != "cancelled":
        return ended
    return ended | {"status": "cancelled", "error": None}


def waiting(reason: str) -> Json:
    """Return what an unfinished response waits for: approval, pause, server."""
    return {"reason": f"waiting_for_{reason or 'its_turn'}"}


def _completed(received: Received, fields: CompletedFields, at: int) -> Json:
    status, error = fields.status, fields.error
    if status == "cancelled":  # no status of the specification
        status, error = "failed", error or {"code": "cancelled", "message": "the run was cancelled"}
    if status == "failed" and not error:
        error = {"code": "server_error", "message": "the run failed"}
    return resource(
        received,
        status,
        output=fields.output,
        error=error,
        incomplete=fields.incomplete_details,
        usage=fields.usage,
        completed_at=at // 1_000_000 if status == "completed" else None,
        model=fields.model,
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
    """Build the object. Times are whole seconds UTC."""
    request = received.body
    params: Json = request["params"]
    return {
        "id": received.response,
        "object": "response",
        "created_at": received.at // 1_000_000,
        "completed_at": completed_at,
        "status": status,
        "incomplete_details": incomplete,
        "model": model or request["model"],
        "previous_response_id": request["previous_response_id"],
        "instructions": request["instructions"],
        "output": list(output),
        "error": error,
        "tools": [tool for tool in request["tools"] if tool["type"] == "function"],
        "tool_choice": _choice(request["tool_choice"], request["allowed_tools"]),
        "text": _text(params.get("text")),
        "reasoning": _reasoning(params.get("reasoning")),
        "usage": usage,
        "store": request["store"],
        "service_tier": "default",  # no other one is requested of the model's server, and no log probabilities
        "top_logprobs": 0,
        **({"conversation": {"id": request["conversation"]}} if request.get("conversation") else {}),
        **{name: params.get(name, default) for name, default in DEFAULTS.items()},
    }


def _choice(choice: Any, allowed: Sequence[str] | None) -> Any:
    if allowed is None or isinstance(choice, dict):
        return choice
    return {"type": "allowed_tools", "mode": choice, "tools": [{"type": "function", "name": name} for name in allowed]}


def _text(params: Json | None) -> Json:
    """Return the output format, with its schema as it was sent, as the official clients expect it. The specification of
    2026-04-24 allows only null in the schema's place."""
    options = params or {}
    form = options.get("format") or {"type": "text"}
    if form["type"] == "json_schema":
        schema_fields = {
            "name": form["name"],
            "description": form.get("description"),
            "strict": form.get("strict") is True,
        }
        form = {"type": "json_schema", **schema_fields, "schema": form.get("schema")}
    verbosity = options.get("verbosity")
    return {"format": form} | ({"verbosity": verbosity} if verbosity else {})


def _reasoning(options: Json | None) -> Json | None:
    return None if options is None else {"effort": options.get("effort"), "summary": options.get("summary")}


def _error_message(message: str, reason: str | None) -> str:
    return f"{message}: {reason[:300]}" if reason else message
