"""What is searched of an event: messages, arguments, outputs, errors, titles, notes, reasons.

Never tokens, whose output has the same text, nor ids, hashes, times and counts. Which event types are searched is said
by `search=` of their declarations (`events/types/`); here, which fields.
"""

import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from conversations.core.json_values import parse
from conversations.events import registry
from conversations.events.payload import clean_text

# Fields of any event that say nothing. What a body holds beside them is searched, kinds we do not know included.
_IGNORED_FIELDS = {
    "event", "type", "id", "conversation_id", "created_at", "index", "run_id", "run_kind", "turn", "usage", "status",
    "duration_ms", "tool_call_id", "tool_call", "approval_id", "parent", "parent_call", "schema", "digest",
    "replay_of", "lookup_key", "input_seq", "attempt", "worker", "tools", "called", "response_id",
    "previous_response_id", "store", "stream", "socket", "demo", "deadline", "output_bytes", "effect", "since",
    "until", "lost", "sender", "recipient", "agent", "calls", "decision", "params", "hosted", "tool_choice",
    "allowed_tools", "forked_at", "how", "by", "owner", "incomplete_details", "principal", "final",
}  # fmt: skip
_FIELD_LABELS = {  # fields in the order they are looked through, and what each is called beside a hit
    "title": "title",
    "content": "",
    "text": "",
    "message": "",
    "name": "tool",
    "args": "arguments",
    "args_raw": "arguments",
    "result_summary": "output",
    "output": "output",
    "error": "error",
    "reason": "reason",
    "why": "why",
    "input": "input",
    "speaker": "about",
}
_JSON_TEXTS = ("args_raw",)  # fields whose text is JSON
_NO_OTHERS = _IGNORED_FIELDS.union(_FIELD_LABELS)
_OPAQUE = frozenset({"image_url", "video_url", "file_data", "encrypted_content", "logprobs", "output_id", "hop"})


class TextField(NamedTuple):
    """Some text and the field it comes from; `label` is empty for spoken text."""

    label: str
    text: str


def digest_of_declarations() -> str:
    """Return a short digest of which fields are searched of which type."""
    types = (
        (known.name, known.search.is_indexed, known.search.is_error, known.search.fields) for known in registry.types()
    )
    declared = (sorted(types), sorted(_IGNORED_FIELDS), list(_FIELD_LABELS), sorted(_OPAQUE), _JSON_TEXTS)
    return blake2b(repr(declared).encode(), digest_size=8).hexdigest()


def read(body: str) -> dict[str, Any]:  # any JSON
    """Parse a stored body; a body that is not an object counts as one text."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        value = _read_slowly(body)
    return value if isinstance(value, dict) else {"text": body}


def parts_of(kind: str, value: dict[str, Any]) -> list[TextField]:
    """Return the searched texts of an event, valid for a text column."""
    return [TextField(_FIELD_LABELS.get(name, name), clean_text(text)) for name, text in _fields_of(kind, value)]


def text_of(kind: str, value: dict[str, Any]) -> str:
    """Return the searched texts of an event as one. No word goes on in the next of them, and nothing is composed across
    a line's end."""
    return clean_text("\n".join([text for _, text in _fields_of(kind, value)]))


def _fields_of(kind: str, value: dict[str, Any]) -> list[tuple[str, str]]:
    known = registry.declared(kind)
    if known is not None and not known.search.is_indexed:
        return []
    if known is not None and known.search.fields:
        value = {name: value[name] for name in known.search.fields if name in value}
    names = [name for name in _FIELD_LABELS if name in value]
    if value.get("args") and "args_raw" in names:
        names.remove("args_raw")  # the same as text
    names += [name for name in value if name not in _NO_OTHERS]
    fields = [(name, _text(_sent(value[name]) if name in _JSON_TEXTS else value[name])) for name in names]
    return [field for field in fields if field[1]]


def _sent(text: Any) -> Any:
    """Return what a JSON text says; it may be all escapes. Text that is not JSON stays as it is."""
    if not isinstance(text, str):
        return text
    sent = parse(text)
    return sent if isinstance(sent, dict | list) else text


def senders_of(principal: str, value: dict[str, Any]) -> tuple[str, ...]:
    """Return who sent an event, as it says, and the principal."""
    senders = (value.get("sender"), value.get("agent"), value.get("by"), principal)
    return tuple([name for name in senders if isinstance(name, str) and name])


def names_of(senders: Iterable[str]) -> set[str]:
    """Return the names under which these are found: also without their prefix."""
    names = {clean_text(name) for name in senders}
    return names | {bare for name in names if (bare := name.partition(":")[2])}


def kinds_of(kind: str, value: dict[str, Any]) -> set[str]:
    """Return the types under which an event is found: its own, its family if it has a dot, `error` if something
    failed, and `thumb.up` or `thumb.down` if it gives one."""
    kinds = {kind, kind.partition(".")[0]}
    if kind == "event.annotated" and value.get("thumb") in ("up", "down"):
        kinds.add(f"thumb.{value['thumb']}")
    is_bad = (known := registry.declared(kind)) is not None and known.search.is_error
    return kinds | {"error"} if is_bad or value.get("error") else kinds


def _read_slowly(body: str) -> Any:  # any JSON
    """Parse what holds a number or a lone surrogate that only Python's own parser accepts."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str:
    """Return the texts of a JSON value as one, keys before their values."""
    if isinstance(value, str):
        return "" if value.startswith("data:") and ";base64," in value[:100] else value
    return ", ".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            if text := _text(value):
                yield text
        case dict():
            for name, inner in value.items():
                if name not in _OPAQUE:
                    text = _text(inner)
                    yield f"{name}: {text}" if text else name
        case list():
            for inner in value:
                yield from _texts(inner)
        case bool() | None:
            return
        case _:
            yield str(value)
