"""The contents of an event, ready to draw: rich text, fields or a tree, folded if long."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

from conversations.core.html_escape import safe
from conversations.rendering import json_tree, richtext

LONG_ROWS = 28  # rows on screen; a longer text starts folded
_ROW = 90  # characters of one row, about

ENVELOPE = frozenset(
    {"id", "event", "type", "conversation_id", "sender", "recipient", "content", "text", "role", "agent", "name"}
    | {"metadata", "created_at", "imported", "run_id", "turn", "final", "usage", "index", "demo"}
)
STEP = ENVELOPE | frozenset(
    {"args", "args_raw", "result_summary", "output", "output_bytes", "status", "error", "duration_ms", "tool_call_id"}
    | {"tool_call", "parent_call", "namespace", "qualified_name", "lookup_key", "origin", "mcp_server", "schema"}
    | {"effect", "replay_of", "edited_by", "answered_by"}
)
_OURS = ("output_id", "hop", "reason", "demo")  # of metadata: drawn in places of their own, or nothing to see


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
    "to", "to_agent",
))  # fmt: skip


def more(body: Mapping[str, Any], shown: frozenset[str], *, sent_by: str = "") -> Markup | None:
    """Draw the fields that the event's type does not show otherwise, or not whole; None without any.

    `sent_by` is the principal if it is shown: metadata that says the same is left out, metadata that says another is
    not.
    """
    extra = {
        name: value
        for name, value in body.items()
        if value not in (None, {}, [], "") and (name not in shown or _is_clipped(name, value))
    }
    metadata = body.get("metadata")  # of any type: it is the sender's
    if isinstance(metadata, dict):
        metadata = {name: value for name, value in metadata.items() if name not in _OURS}
        if sent_by and metadata.get("sent_by") == sent_by:
            del metadata["sent_by"]
    if metadata:
        extra["metadata"] = metadata
    return tree(extra) if extra else None


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
        return json_tree.draw_fields(value) or json_tree.draw(text)
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
        return json_tree.draw_fields(value) or json_tree.draw(text)
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
