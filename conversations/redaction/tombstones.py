"""What stands in place of a redacted body: what the event was, without what it said (§5)."""

import re
from typing import Any

from conversations.core import json_values
from conversations.events.payload import ParsedPayload, parse
from conversations.events.projections import mark_output, repeats_output

# Who, where and how it ended: names and ids that the fold of other events goes by.
STRUCTURE = frozenset((
    "event", "type", "id", "conversation_id", "created_at", "run_id", "agent", "turn", "parent_call",
    "tool_call", "tool_call_id", "name", "namespace", "qualified_name", "lookup_key", "origin", "mcp_server",
    "schema", "effect", "status", "duration_ms", "replay_of", "index", "role", "sender", "recipient",
    "approval_id", "decision", "by", "run_kind", "usage", "model", "demo", "is_demo", "about", "thumb",
    "speaker", "handler", "kind", "output_bytes", "calls", "response_id", "previous_response_id", "store",
    "input_seq", "parent", "forked_at", "final", "deadline", "level", "into", "attempt", "to",
    "rule", "rule_by", "socket", "changed", "at_next_step", "step",
))  # fmt: skip
# What is there and empty means another thing than what is not there: a step without a result is a call.
EMPTIED = ("content", "text", "result_summary", "output", "error", "args_raw")
CODE = re.compile("[a-z_]{1,40}")  # a reason that the program gave: hop_limit
OF_METADATA = ("output_id", "hop", "repeats")


def tombstone(body: str, before: ParsedPayload | None = None) -> str:
    """Return the JSON that stands in place of a body. `before`: the event right before it, as it was; a message states
    that it does not repeat an output there, which can no longer be seen once both are empty."""
    payload = json_values.parse(body)
    if not isinstance(payload, dict):
        return "{}"
    left: dict[str, Any] = {name: value for name, value in payload.items() if name in STRUCTURE and _is_small(value)}
    left["redacted"] = True  # pages say so
    left |= {name: "" for name in EMPTIED if payload.get(name) is not None}
    if isinstance(reason := payload.get("reason"), str) and CODE.fullmatch(reason):
        left["reason"] = reason
    metadata = payload.get("metadata")
    if isinstance(metadata, dict):
        left["metadata"] = {name: metadata[name] for name in OF_METADATA if isinstance(metadata.get(name), str | int)}
    if before is not None and before.kind == "output" and _is_another_message(body, before):
        left["metadata"] = left.get("metadata", {}) | {"repeats": False}
    return json_values.compact(left)


def _is_another_message(body: str, output: ParsedPayload) -> bool:
    event = parse(body.encode())
    return event.kind == "message" and not repeats_output(event, mark_output(output.speaker, output.words))


def _is_small(value: object) -> bool:
    """Return whether it is a name or a number, or a list or table of such: no place to hide a text in."""
    if isinstance(value, str):
        return len(value) <= 401
    if isinstance(value, list):
        return all(isinstance(item, str) and len(item) <= 64 for item in value)
    if isinstance(value, dict):
        return all(CODE.fullmatch(name) and _is_number(item) for name, item in value.items())
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, dict) and _is_small(value))
