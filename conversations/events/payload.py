"""Parse a payload that came over a bus or over HTTP, leniently; its body is stored as the text that arrived (§3.1).

`parse` returns a `ParsedPayload`: the fields that the record uses. Every other field stays in the body, unread. No
Django.
"""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from conversations.core import json_depth
from conversations.core.errors import Invalid, TooLarge
from conversations.core.ids import text_digest
from conversations.core.json_values import number_of, refuse_constant, whole_of
from switchboard import topics
from switchboard.bus import MAX_PAYLOAD

MAX_BYTES = MAX_PAYLOAD  # of one payload
MAX_DEPTH = 100
MAX_KEY = topics.MAX_SUFFIX  # characters of a conversation's id
MAX_NUMBER = 400  # bytes of a number that fits a field: a float in full has no more
MAX_CALL_ID = 400  # characters; of a longer one the beginning and a digest stand in the tables
NAMELESS = ("signal", "control")  # topics that need not name a conversation

Int32 = Annotated[int, msgspec.Meta(ge=-(1 << 31), lt=1 << 31)]
Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
Size = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]  # bytes

if TYPE_CHECKING:
    Json = msgspec.Raw | None
else:
    Json = msgspec.Raw  # msgspec decodes no union with Raw; `fit` turns null into None
_RAWS = ("args", "result_summary", "output", "error")

_UNFIT = re.compile("[\0\ud800-\udfff]")


class Metadata(msgspec.Struct, gc=False):
    """What the record reads of an envelope's metadata."""

    output_id: str | None = None
    hop: Int32 | None = None
    when: msgspec.Raw = msgspec.Raw()  # JSON of any kind: what is none of ours must not make the rest illegible
    repeats: msgspec.Raw = msgspec.Raw()

    @property
    def is_for_next_step(self) -> bool:
        """Return whether a run at work is to get it at its next step."""
        return bytes(self.when) == b'"next_step"'

    @property
    def repeats_nothing(self) -> bool:
        """Return whether a redacted message states that it did not repeat the output before it."""
        return bytes(self.repeats) == b"false"


class ParsedPayload(msgspec.Struct, kw_only=True, gc=False):
    """What the record reads of a payload. Texts are fit for a column (no NUL, no lone surrogate)."""

    event: str | None = None
    type: str | None = None
    id: str | None = None
    conversation_id: str | None = None
    sender: str | None = None
    recipient: str | None = None
    content: str | None = None
    text: str | None = None
    agent: str | None = None
    index: Int32 | None = None
    # tool steps
    name: str | None = None
    args: Json = None
    args_raw: str | None = None
    result_summary: Json = None
    output: Json = None
    status: str | None = None
    error: Json = None
    duration_ms: Milliseconds | None = None
    tool_call_id: str | None = None
    namespace: str | None = None
    qualified_name: str | None = None
    lookup_key: str | None = None
    mcp_server: str | None = None
    output_bytes: Size | None = None
    origin: str | None = None
    schema: str | None = None
    replay_of: str | None = None
    # ours
    run_id: str | None = None
    turn: Int32 | None = None
    tool_call: str | None = None
    title: str | None = None
    handler: str | None = None
    demo: bool | None = None
    created_at: str | None = None
    metadata: Metadata | None = None

    def fit(self) -> "ParsedPayload":
        """Let a null JSON value be None, and a call id no longer than an index can hold; return itself."""
        if not (self.args is self.result_summary is self.output is self.error is None):
            for name in _RAWS:
                if (value := getattr(self, name)) is not None and bytes(value) == b"null":
                    setattr(self, name, None)
        if self.tool_call_id is not None:
            self.tool_call_id = short_call_id(self.tool_call_id)
        return self

    @property
    def kind(self) -> str:
        """The event's kind: a stream event's `event`, else an envelope's `type`, else `unknown`."""
        return (self.event or self.type or "unknown")[:64]

    @property
    def speaker(self) -> str:
        """Who said it, as far as the payload tells: agents as `agent:NAME`."""
        if self.sender:
            return self.sender[:MAX_KEY]
        return f"agent:{self.agent.removeprefix('agent:')}"[:MAX_KEY] if self.agent else ""

    @property
    def words(self) -> str:
        """What was said, for a line in a list."""
        return (self.content if self.content is not None else self.text) or ""


def short_call_id(call_id: str) -> str:
    """Return a call id as the tables have it: of one too long for an index its beginning and a digest."""
    if len(call_id) <= MAX_CALL_ID:
        return call_id
    digest = text_digest(call_id)
    return f"{call_id[: MAX_CALL_ID - 65]}…{digest}"


_strict = msgspec.json.Decoder(ParsedPayload)
_TEXTS = [
    f.name for f in msgspec.structs.fields(ParsedPayload) if str in getattr(f.type, "__args__", ()) or f.type is str
]
_INTEGERS = ("index", "turn")
_FIELDS = [*_TEXTS, *_RAWS, *_INTEGERS, "duration_ms", "metadata"]
_loose: Any = msgspec.json.Decoder(  # Any: a struct made here
    msgspec.defstruct("Loose", [(name, msgspec.Raw, None) for name in _FIELDS], gc=False)
)
_loose_metadata: Any = msgspec.json.Decoder(msgspec.defstruct("LooseMetadata", [("output_id", msgspec.Raw, None)]))


def parse(payload: bytes) -> ParsedPayload:
    """Read one JSON object. Raises `Invalid` when it is none, `TooLarge` over 1 MiB or 100 levels."""
    check_size(len(payload))
    if payload.count(b"{") + payload.count(b"[") > MAX_DEPTH:
        check_depth(payload)
    try:
        parsed = _strict.decode(payload)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError):
        return _parse_leniently(payload)
    parsed.fit()
    if b"\\" in payload and b"\\u0000" in payload:  # one byte is found six times as fast as six
        for name in _TEXTS:
            if (value := getattr(parsed, name)) is not None:
                setattr(parsed, name, clean_text(value))
    return parsed


def as_parsed(written: ParsedPayload, body: bytes) -> ParsedPayload:
    """Return what `parse` returns of the JSON of this payload, which is `body`: the payload itself, unless a text of it
    fits no column. Raises as `parse` does."""
    check_size(len(body))
    if len(written.args or b"") + len(written.output or b"") >= MAX_DEPTH:  # nothing else is nested
        check_depth(body)
    if (written.tool_call_id and len(written.tool_call_id) > MAX_CALL_ID) or (b"\\" in body and b"\\u0000" in body):
        return parse(body)
    return written


def decoded(body: bytes | str) -> Any:  # any JSON
    """Decode a stored body, whoever sent it. What this process holds in no text or number of its own stays there: a
    number as it was written, a lone surrogate as a question mark. Raises `ValueError` for what is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = body if isinstance(body, str) else body.decode()
        value = json.loads(text, parse_int=whole_of, parse_float=number_of, parse_constant=refuse_constant)
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def fields_of(body: str) -> dict[str, Any]:
    """Return the fields of a stored body; none for one that is not a JSON object."""
    try:
        value = decoded(body.encode("utf-8", "replace"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def check_size(size: int) -> None:
    """Refuse a payload over 1 MiB."""
    if size > MAX_BYTES:
        raise TooLarge(f"must be at most {MAX_BYTES:,} bytes; got {size:,}", field="payload")


def check_depth(payload: bytes) -> None:
    """Refuse JSON nested deeper than 100 levels, without decoding it."""
    if len(payload) > MAX_DEPTH and json_depth.is_deeper(payload, MAX_DEPTH):
        raise TooLarge(f"must be nested at most {MAX_DEPTH} levels deep", field="payload")


def clean_text(text: str) -> str:
    """Replace what a column cannot hold (NUL, lone surrogates) by U+FFFD."""
    if text.isascii() and "\0" not in text:  # nearly all; a third of the time of the pattern
        return text
    return _UNFIT.sub("\ufffd", text)


def is_posted(topic: str) -> bool:
    """Return whether messages on this topic are kept as posts."""
    return topic.partition(":")[0] in topics.POSTED


def check_topic(topic: str) -> None:
    """Raise `Invalid` unless it is `prefix:suffix` with a prefix we know and a suffix of 1 to 200 characters."""
    if wrong := topics.fault(topic):
        raise Invalid(wrong, field="topic")


def check_named(topic: str, conversation: str | None) -> None:
    """Raise `Invalid` when a message names no conversation on a topic where it must."""
    if conversation is None and topic.partition(":")[0] not in NAMELESS:
        raise Invalid("must be the conversation's id", field="payload.conversation_id")


def conversation_of(topic: str, payload: ParsedPayload) -> str | None:
    """File by the payload, else by a `stream:` topic, else nowhere (None). Raises `Invalid` for an unfit id."""
    key = payload.conversation_id
    if not key:
        prefix, _, suffix = topic.partition(":")
        key = suffix if prefix == "stream" else None
    if key is not None and not 1 <= len(key) <= MAX_KEY:
        raise Invalid(f"must be 1 to {MAX_KEY} characters; got {len(key)}", field="payload.conversation_id")
    return key


def _parse_leniently(payload: bytes) -> ParsedPayload:
    """Read a payload whose fields are not of the types we expect: keep what fits, leave the rest in the body."""
    try:
        payload.decode()  # UTF-8: a field that is passed over is not looked at
        loose = _loose.decode(payload)
    except msgspec.ValidationError as error:
        raise Invalid(f"must be a JSON object: {error}", field="payload") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _fitted(_read_slowly(payload))
    return _fitted({name: bytes(raw) for name in _FIELDS if (raw := getattr(loose, name)) is not None})


def _fitted(raws: Mapping[str, bytes]) -> ParsedPayload:
    fields = {name: value for name, raw in raws.items() if (value := _fitting(name, raw)) is not None}
    return ParsedPayload(**fields).fit()


def _fitting(name: str, raw: bytes) -> Any:
    """Read one field's JSON if it is what the field may hold; None if not."""
    if name in _RAWS:
        return msgspec.Raw(raw)
    if name == "metadata":
        output = _output_of(raw)
        return None if output is None else Metadata(output_id=output)
    if name in _TEXTS:
        return clean_text(msgspec.json.decode(raw)) if raw[:1] == b'"' else None
    return _number_of(name, raw) if len(raw) <= MAX_NUMBER else None


def _number_of(name: str, raw: bytes) -> int | float | None:
    with contextlib.suppress(msgspec.MsgspecError):  # one that no float holds
        value: Any = msgspec.json.decode(raw)
        if name in _INTEGERS:
            return value if type(value) is int and abs(value) < 1 << 31 else None
        if name == "duration_ms" and type(value) in (int, float) and 0 <= value <= 1e12:
            return float(value)
    return None


def _output_of(raw: bytes) -> str | None:
    with contextlib.suppress(msgspec.ValidationError):  # no object
        output = bytes(_loose_metadata.decode(raw).output_id or b"")
        return clean_text(msgspec.json.decode(output)) if output[:1] == b'"' else None
    return None


def _read_slowly(payload: bytes) -> dict[str, bytes]:
    """Read the JSON of each field of a payload with a lone surrogate, which only Python's own parser accepts. What is
    any JSON keeps it as an escape, everything else has U+FFFD in its place."""
    try:
        text = payload.decode()  # UTF-8: json guesses at bytes
        value: Any = json.loads(text, parse_constant=refuse_constant, parse_float=number_of)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"must be a JSON object: {error}", field="payload") from None
    if not isinstance(value, dict):
        raise Invalid(f"must be a JSON object; got {type(value).__name__}", field="payload")
    texts = {n: json.dumps(value[n], ensure_ascii=n in _RAWS) for n in _FIELDS if value.get(n) is not None}
    return {name: clean_text(text).encode() for name, text in texts.items()}
