"""Parse messages as instrumentations write them: GenAI convention parts, chat completions, Responses items, the Vercel
AI SDK's, LangChain's serialized ones, Gemini's contents. One lenient parser for all of them."""

import json
from functools import lru_cache
from typing import Any, Literal

import msgspec

from conversations.core import sliced_json
from conversations.core.errors import SwitchboardError
from conversations.events.payload import MAX_DEPTH, check_depth
from conversations.telemetry.span_facts import Call, Message, Result, Role

MAX_MESSAGES = 10_000  # messages of one history
MAX_NAMES = 12  # of a flattened attribute
MAX_VALUE = 240_000  # characters of a value, fewer where they take many bytes (`json_size`)
MAX_HISTORY = 4 << 20  # characters of a history
SMALL_HISTORY = 256 << 10  # characters of one that is cut in a millisecond
SMALL_PIECE = 8 << 10  # bytes of a message that is remembered
Json = Any  # whatever an instrumentation wrote


class PlainPart(msgspec.Struct, forbid_unknown_fields=True):
    """A text part of the GenAI conventions."""

    type: Literal["text"]
    content: str


class PlainMessage(msgspec.Struct, forbid_unknown_fields=True):
    """A message of the GenAI conventions that consists of text."""

    role: Literal["system", "user", "assistant"]
    parts: list[PlainPart]
    finish_reason: str | None = None


_plain_message = msgspec.json.Decoder(PlainMessage)
_list = msgspec.json.Decoder(list[msgspec.Raw])

_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "systemmessage": "system",
    "user": "user", "human": "user", "humanmessage": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "tool": "tool", "function": "tool", "toolmessage": "tool",
}  # fmt: skip
_TEXTS = ("text", "input_text", "output_text", "refusal")
_REASONS = ("reasoning", "thinking")
_CALLS = ("tool_call", "tool-call", "tool_use", "function_call", "toolCall")
_RESULTS = ("tool_call_response", "tool-result", "tool_result", "function_call_output", "toolResult")
_WRAPPERS = ("message", "message_content", "tool_call", "kwargs", "data")


def decoded(value: Json, longest: int = MAX_VALUE) -> Json:
    """Decode a text that holds JSON; anything else, and a text that holds none or is too long, stays as it is."""
    if not isinstance(value, str) or value[:1] not in ("[", "{", '"') or len(value) > longest:
        return value
    raw = value.encode("utf-8", "replace")
    try:
        check_depth(raw)
        return sliced_json.decode(raw, MAX_DEPTH)
    except (msgspec.DecodeError, SwitchboardError, RecursionError, UnicodeDecodeError):
        return value


def encoded(value: Json) -> str:
    """Write JSON compactly; values that it cannot hold as text."""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, OverflowError, RecursionError, TypeError):
        return json.dumps(value, default=str)


def messages_of(value: Json, role: Role = "user") -> list[Message]:
    """Parse a list of messages, or one. `role` is the default role."""
    if isinstance(value, str) and value[:2] == "[{" and (pieces := _pieces(value)) is not None:
        return [message for piece in pieces if (message := _message_of_piece(piece, role)) is not None]
    value = decoded(value, MAX_HISTORY)
    if isinstance(value, dict) and "role" not in value:
        value = _within(value)
    items = value if isinstance(value, list) else [value]
    while len(items) == 1 and isinstance(items[0], list):  # LangChain nests the messages of each prompt
        items = items[0]
    return [message for item in items[:MAX_MESSAGES] if (message := message_of(item, role)) is not None]


def _within(value: dict[str, Json]) -> Json:
    """Return the messages of a whole request or answer: LangChain's, the Responses API's, Gemini's."""
    if value.get("object") == "response" and isinstance(value.get("output"), list):
        return value["output"]
    messages = next((value[name] for name in ("messages", "contents") if isinstance(value.get(name), list)), None)
    content = value.get("content")
    answer = content if isinstance(content, dict) and "parts" in content else value
    return answer if messages is None else messages


def _pieces(history: str) -> list[bytes] | None:
    """Split the JSON of an ordinary history into its undecoded messages; None for any other."""
    if len(history) > SMALL_HISTORY:
        return None
    raw = history.encode("utf-8", "replace")
    try:
        check_depth(raw)
        return [bytes(piece) for piece in _list.decode(raw)[:MAX_MESSAGES]]
    except (msgspec.DecodeError, SwitchboardError, RecursionError, UnicodeDecodeError):
        return None


def _message_of_piece(piece: bytes, role: Role) -> Message | None:
    """Parse one message, cached: a history's messages are repeated in each later one."""
    if len(piece) > SMALL_PIECE:
        return _read_piece(piece, role)
    return _read_plain_again(piece) or _read_again(piece, role)


def _read_plain(piece: bytes) -> Message | None:
    """Parse a message of plain text that has a role, as most do; None for any other."""
    try:
        plain = _plain_message.decode(piece)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    texts = [part.content for part in plain.parts if part.content.strip()]
    return Message(plain.role, "\n".join(texts)) if texts else None


def _read_piece(piece: bytes, role: Role) -> Message | None:
    try:
        return message_of(msgspec.json.decode(piece), role)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


_read_again = lru_cache(2048)(_read_piece)
_read_plain_again = lru_cache(4096)(_read_plain)


def message_of(value: Json, role: Role = "user") -> Message | None:
    """Parse one message; None if it has no contents."""
    value = _unwrapped(value)
    if isinstance(value, str):
        return Message(role, value) if value.strip() else None
    if not isinstance(value, dict):
        return None
    kind = str(value.get("type") or "")
    role = _role_of(value, kind, role)
    content = next((value[name] for name in ("parts", "contents", "content", "text") if value.get(name)), None)
    parts = _Parts()
    if kind in _CALLS or kind in _RESULTS:
        parts.take(value)
    elif role == "tool" and (call_id := _first(value, "tool_call_id", "id")):
        parts.results.append(Result(call_id, decoded(_plain(content))))
    else:
        parts.take_all(content)
    beside = value.get("additional_kwargs")  # LangChain's, of a provider's own call
    beside = beside if isinstance(beside, dict) else {}
    calls = value.get("tool_calls") or value.get("toolCalls") or beside.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        parts.take_call(_unwrapped(call))
    if parts.results and not parts.texts:
        role = "tool"
    message = Message(
        role, "\n".join(parts.texts), tuple(parts.calls), tuple(parts.results), "\n".join(parts.reasons),
        _first(value, "name"),
    )  # fmt: skip
    return message if message.text or message.calls or message.results else None


class _Parts:
    """The contents of a message's parts."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.reasons: list[str] = []
        self.calls: list[Call] = []
        self.results: list[Result] = []

    def take_all(self, content: Json) -> None:
        """Add contents: a text, a part, or a list of either."""
        for part in content if isinstance(content, list) else [content]:
            self.take(_unwrapped(part))

    def take(self, part: Json) -> None:
        """Add one part; if it is neither text nor a call, its kind."""
        if isinstance(part, str):
            self._say(part)
        if not isinstance(part, dict):
            return
        kind = str(part.get("type") or part.get("part_kind") or "")
        if kind in _CALLS or "functionCall" in part or isinstance(part.get("function_call"), dict):
            self.take_call(part)
        elif kind in _RESULTS or "functionResponse" in part or isinstance(part.get("function_response"), dict):
            self._take_result(part)
        elif kind in _REASONS:
            self.reasons.append(_plain(part.get("content") or part.get("text") or part.get("thinking") or ""))
        elif kind in _TEXTS or not kind:
            self._say(_plain(next((part[word] for word in ("content", "text", "refusal") if part.get(word)), "")))
        else:
            self._say(f"[{kind}]")

    def take_call(self, part: Json) -> None:
        """Add a tool call, in any shape."""
        if not isinstance(part, dict):
            return
        named = ("function", "functionCall", "function_call")
        inner: dict[str, Json] = next((part[w] for w in named if isinstance(part.get(w), dict)), {})
        both = part | inner
        name = _first(both, "name", "toolName", "tool_name")
        args = next((both[w] for w in ("arguments", "args", "input") if both.get(w) is not None), None)
        if name:
            call_id = _first(part, "id", "toolCallId", "call_id", "tool_call_id") or _first(inner, "id")
            if part.get("type") == "function_call" and part.get("call_id"):  # an item's own id is another one
                call_id = _first(part, "call_id")
            self.calls.append(Call(call_id, name, decoded(args)))

    def _take_result(self, part: dict[str, Json]) -> None:
        inner = next(
            (part[w] for w in ("functionResponse", "function_response") if isinstance(part.get(w), dict)), part
        )
        call_id = _first(inner, "id", "toolCallId", "call_id", "tool_call_id", "tool_use_id")
        output = next((inner[w] for w in ("response", "result", "output", "content") if inner.get(w) is not None), None)
        self.results.append(Result(call_id, decoded(output)))

    def _say(self, text: str) -> None:
        if text.strip():
            self.texts.append(text)


def tool_message_of(value: Json) -> Result | None:
    """Return a tool's result from LangChain's message for it; None if it is none."""
    value = _unwrapped(value)
    if not isinstance(value, dict) or not _first(value, "tool_call_id"):
        return None
    return Result(_first(value, "tool_call_id"), decoded(_plain(value.get("content"))))


def unflattened(attributes: dict[str, Json], prefix: str) -> list[Json]:
    """Return the list that `PREFIX.0.role`, `PREFIX.0.content` and the like describe, of at most 10,000 items."""
    root: dict[str, Json] = {}
    for key, value in attributes.items():
        if not key.startswith(prefix + "."):
            continue
        node, names = root, key[len(prefix) + 1 :].split(".", MAX_NAMES)
        for name in names[:-1]:
            inner = node.setdefault(name, {})
            node = inner if isinstance(inner, dict) else {}
        node[names[-1]] = value
    items = _listed(root)
    return items if isinstance(items, list) else []


def _listed(node: Json) -> Json:
    """Turn objects whose names are all numbers into lists, in numeric order."""
    if not isinstance(node, dict):
        return node
    if node and all(name.isdecimal() and len(name) < 6 for name in node):
        return [_listed(node[name]) for name in sorted(node, key=int)[:MAX_MESSAGES]]
    return {name: _listed(value) for name, value in node.items()}


def _unwrapped(value: Json) -> Json:
    """Unwrap what OpenInference and LangChain wrap in an object with one name."""
    while isinstance(value, dict):
        inner = next((value[name] for name in _WRAPPERS if isinstance(value.get(name), dict)), None)
        if inner is None or ("type" in value and value["type"] in _CALLS):
            return value
        value = ({"lc_id": value["id"]} if isinstance(value.get("id"), list) else {}) | inner
    return value


def _role_of(value: dict[str, Json], kind: str, default: Role) -> Role:
    name = value.get("role") or (kind if kind in _ROLES else "")
    if not name and isinstance(value.get("lc_id"), list) and value["lc_id"]:
        name = value["lc_id"][-1]
    return _ROLES.get(str(name).lower(), default) if name else default


def _first(value: dict[str, Json], *names: str) -> str:
    text = next((value[name] for name in names if isinstance(value.get(name), str | int) and value[name]), "")
    return str(text)


def _plain(value: Json) -> str:
    """Return contents as text: parts are joined, other JSON is written."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = _Parts()
        parts.take_all(value)
        return "\n".join(parts.texts)
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)
