"""The contents of an event, ready to draw: rich text, fields or a tree, folded if long."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

from conversations.core.html_escape import safe
from conversations.core.plain_text import counted
from conversations.rendering import json_tree, richtext

LONG_ROWS = 28  # rows on screen; a longer text starts folded
_ROW = 90  # characters of one row, about

ENVELOPE = frozenset(
    {"id", "event", "type", "conversation_id", "sender", "recipient", "role", "agent", "name", "metadata", "created_at"}
    | {"imported", "run_id", "turn", "final", "usage", "index", "demo", "thoughts"}
)
SPOKEN = ENVELOPE | {"content", "text"}  # of a row that shows what was said
STEP = ENVELOPE | frozenset(
    {"args", "args_raw", "result_summary", "output", "output_bytes", "status", "error", "duration_ms", "tool_call_id"}
    | {"tool_call", "parent_call", "namespace", "qualified_name", "lookup_key", "origin", "mcp_server", "schema"}
    | {"effect", "replay_of", "edited_by", "answered_by"}
)
_USAGE_DETAILS = frozenset(f"{side}_tokens_details" for side in ("input", "output", "prompt", "completion"))
_USAGE_COUNTS = frozenset(
    {"requests", "cache_read_input_tokens", "cache_creation_input_tokens"}
    | {f"{side}_tokens" for side in ("input", "output", "prompt", "completion", "total")}
    | {f"{part}_tokens" for part in ("cached", "cache_read", "cache_write", "reasoning", "audio", "text", "image")}
    | {f"{part}_prediction_tokens" for part in ("accepted", "rejected")}
)
_IMPORTED = {"principal", "at", "erased_by", "before"}
_ROLES = ("user", "assistant", "system", "developer", "tool")
_TIME = re.compile(r"[0-9TZ :.+-]{0,40}")
MAX_ID = 200  # characters
MAX_REASON = 1_000  # characters of a reason that a row shows


class Content(NamedTuple):
    """Drawn contents. `rows` is 0 for a short text; `raw` is the JSON behind fields."""

    html: Markup
    rows: int = 0
    raw: Markup | None = None
    is_fields: bool = False


def words(text: str) -> Content:
    """Draw a message's text: a JSON object, alone or at the end, as fields or a tree; everything else as rich text."""
    if text[:1] == "{" or text[:1].isspace():
        structured = _structured(text.strip())
        if structured is not None:
            return structured
    if "\n{" in text and text.rstrip().endswith("}"):
        preface, _, rest = text.partition("\n{")
        structured = _structured("{" + rest.rstrip())
        if structured is not None:
            return Content(_after(richtext.render(preface), structured.html), raw=structured.raw)
    return Content(richtext.render(text), _long(text))


MAX_LINE = 2_000  # characters of a field that a row shows in one line
_ONE_LINE = frozenset((
    "component", "decision", "from_agent", "handler", "how", "level", "model", "owner", "reason", "stage", "title",
    "to", "to_agent", "why",
))  # fmt: skip


def more(
    body: Mapping[str, Any], shown: frozenset[str], *, sent_by: str = "", shows_reason: bool = False
) -> Markup | None:
    """Draw the fields that the event's type does not show otherwise, or not whole; None without any. A field of the
    envelope that a row does not show is left out only if it says nothing: an agent reads it all.

    `sent_by` is the principal if it is shown: metadata that says the same is left out, metadata that says another is
    not. `shows_reason`: whether the row shows the metadata's reason.
    """
    extra = {
        name: value
        for name, value in body.items()
        if value not in (None, {}, [], "")
        and (name not in shown or _is_clipped(name, value) or not _says_nothing(name, value, body))
    }
    extra.pop("metadata", None)
    metadata = body.get("metadata")  # of any type: it is the sender's
    if isinstance(metadata, dict):
        metadata = {name: value for name, value in metadata.items() if not _is_ours(name, value)}
        if sent_by and metadata.get("sent_by") == sent_by:
            del metadata["sent_by"]
        if shows_reason and len(metadata.get("reason", "")) <= MAX_REASON:
            metadata.pop("reason", None)
    if metadata:
        extra["metadata"] = metadata
    return tree(extra) if extra else None


def _says_nothing(name: str, value: Any, body: Mapping[str, Any]) -> bool:
    """Return whether a field of the envelope has a value as the record's own events have it, or one that the row shows
    at another place. Other fields are those of a view, which draws them."""
    match name:
        case "id" | "run_id" | "conversation_id" | "event" | "type":
            return _is_id(value)
        case "created_at":
            return isinstance(value, str) and _TIME.fullmatch(value) is not None
        case "sender" | "recipient":
            return isinstance(value, str) and len(value) <= MAX_ID
        case "content":
            return isinstance(value, str)
        case "text":
            return isinstance(value, str) and body.get("content") in (None, value)
        case "role":
            return value in _ROLES
        case "agent" | "name":
            return (
                isinstance(value, str)
                and len(value) <= MAX_ID
                and body.get("sender") in (None, value, f"agent:{value}")
            )
        case "turn" | "index" | "final" | "demo" | "thoughts":
            return isinstance(value, int | float)
        case "usage":
            return usage_counts(value) is not None
        case "imported":
            return isinstance(value, dict) and value.keys() <= _IMPORTED and all(map(_is_id, map(str, value.values())))
    return True


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_ID and not any(map(str.isspace, value))


def _is_ours(name: str, value: Any) -> bool:
    """Return whether a field of the metadata is one of those that the product writes, with nothing to see."""
    return (name in ("hop", "demo") and isinstance(value, int)) or (name == "output_id" and _is_id(value))


def _is_clipped(name: str, value: Any) -> bool:
    return name in _ONE_LINE and isinstance(value, str) and len(value) > MAX_LINE


def tree(value: Any) -> Markup:
    """Draw a decoded value as JSON."""
    return json_tree.draw(msgspec.json.encode(value).decode())


def result(text: str) -> Markup:
    """Draw a tool's output as fields, a tree or text. `text` is JSON; JSON within a string is drawn too."""
    if len(text) <= json_tree.MAX_TEXT:
        try:
            value = json_tree.parse(text)
        except ValueError:
            return json_tree.draw_text(text)
        if type(value) is str:
            return _printed(value)
        return json_tree.draw_result(value, text)
    try:
        value = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        value = None
    return json_tree.draw_text(value if isinstance(value, str) else text)


def _printed(text: str) -> Markup:
    """Draw a tool's text output: an object as fields or a tree, else as it is."""
    if text.strip()[:1] in ("{", "[") and len(text) <= json_tree.MAX_TEXT:
        try:
            value = json_tree.parse(text)
        except ValueError:
            return json_tree.draw_text(text)
        return json_tree.draw_result(value, text)
    return json_tree.draw_text(text)


def _structured(text: str) -> Content | None:
    if not (text.startswith("{") and text.endswith("}")) or len(text) > json_tree.MAX_TEXT:
        return None
    try:
        value = json_tree.parse(text)
    except ValueError:
        return None
    fields = json_tree.draw_fields(value)
    if fields is not None:
        return Content(fields, raw=json_tree.draw(text), is_fields=True)
    return Content(json_tree.draw(text), is_fields=True)


def _after(preface: Markup, structured: Markup) -> Markup:
    return preface + safe('<div class="structured">') + structured + safe("</div>")


def _long(text: str) -> int:
    """Return the estimated rows on screen; 0 if they are few enough to show at once."""
    rows = max(text.count("\n") + 1, len(text) // _ROW)
    return rows if rows > LONG_ROWS else 0


def usage(counts: object) -> str:
    """Return a model's token usage as text, as far as it is known: 0 means not counted."""
    if not isinstance(counts, dict):
        return ""
    spent, usage_text, total = (counts.get(f"{side}_tokens") for side in ("input", "output", "total"))
    if type(spent) is int and type(usage_text) is int and spent and usage_text:
        return f"{counted(spent, 'token')} in, {usage_text:,} out"
    return counted(total, "token") if type(total) is int and total else ""


def usage_counts(usage: object) -> dict[str, int] | None:
    """Return the counts of a model's token usage by name, those of its details by path; None if there is anything else
    in it."""
    if not isinstance(usage, dict):
        return None
    counts: dict[str, int] = {}
    for name, value in usage.items():
        is_nested = name in _USAGE_DETAILS and isinstance(value, dict)
        for part, number in value.items() if is_nested else [(name, value)]:
            if number is not None and (part not in _USAGE_COUNTS or type(number) is not int):
                return None
            counts |= {f"{name}.{part}" if is_nested else name: number} if number is not None else {}
    return counts
