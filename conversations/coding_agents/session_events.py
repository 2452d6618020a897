"""The events of a coding agent's session: payloads of messages, outputs and tool calls, each with its id.

Ids derive from the session's own (a line's uuid, a tool call's id), so that what a hook, a session file and its
follower report about the same thing is stored once. Called by the parsers beside this module.
"""

from typing import Any, NamedTuple

import msgspec

from conversations.core.ids import text_digest
from conversations.core.json_size import fits, fitting_length
from conversations.core.json_values import text_of

MAX_KEY = 200
PERSON = "user"
SUMMARY = 500  # characters of `result_summary`

Payload = dict[str, Any]  # JSON


class SessionEvent(NamedTuple):
    """One event to be stored: its payload, which has an id, and the bus prefix of its topic (`chat` or `stream`)."""

    payload: Payload
    prefix: str = "stream"


class SessionSpeaker(NamedTuple):
    """The agent and the conversation of a session."""

    agent: str
    conversation: str


def conversation_of(tool: str, session: str, sub_agent: str = "") -> str:
    """Return the id of a session's conversation; a sub-agent has its own."""
    name = f"{tool}-{session}" + (f"-{sub_agent}" if sub_agent else "")
    return name if len(name) <= MAX_KEY else f"{name[: MAX_KEY - 33]}-{derived_id(name)}"


def derived_id(*parts: str) -> str:
    """Return an event id, the same for the same parts."""
    return text_digest("\0".join(parts))[:32]


def prompt(speaker: SessionSpeaker, text: str, id_: str, at: str | None = None) -> SessionEvent:
    """Return what a person typed as an event."""
    ends = {"sender": PERSON, "recipient": f"agent:{speaker.agent}"}
    return _envelope(speaker, "message", text, id_, at, ends, {})


def notice(speaker: SessionSpeaker, text: str, id_: str, at: str | None = None, **metadata: object) -> SessionEvent:
    """Return as a control event what the agent's program told it or reports about it."""
    ends = {"sender": f"agent:{speaker.agent}", "recipient": f"chat:{speaker.conversation}"}
    return _envelope(speaker, "control", text, id_, at, ends, metadata)


def handed(speaker: SessionSpeaker, to: str, text: str, id_: str, at: str | None = None) -> SessionEvent:
    """Return as an event what the agent asks a sub-agent to do."""
    ends = {"sender": f"agent:{speaker.agent}", "recipient": f"agent:{to}"}
    return _envelope(speaker, "message", text, id_, at, ends, {})


def opening(speaker: SessionSpeaker, text: str, id_: str, at: str | None = None, **metadata: object) -> SessionEvent:
    """Return as an event the agent's first words in a conversation, which give it its title."""
    ends = {"sender": f"agent:{speaker.agent}", "recipient": f"chat:{speaker.conversation}"}
    return _envelope(speaker, "message", text, id_, at, ends, metadata)


def answer(speaker: SessionSpeaker, text: str, id_: str, at: str | None = None) -> SessionEvent:
    """Return the agent's output as an event."""
    return _streamed(speaker, "output", id_, at, text=bounded(text))


def model_call(
    speaker: SessionSpeaker, usage: Payload, id_: str, at: str | None = None, *, model: object = None,
    error: str | None = None,
) -> SessionEvent:  # fmt: skip
    """Return one model call as an event: its usage, or the error if there was no answer."""
    name = model if isinstance(model, str) else None
    return _streamed(speaker, "model.call", id_, at, model=name, usage=usage or None, error=error)


def call_started(
    speaker: SessionSpeaker,
    name: str,
    call_id: str | None,
    arguments: object,
    id_: str,
    at: str | None = None,
    **more: object,
) -> SessionEvent:
    """Return the start of a tool call as an event; arguments too long for one event are shortened to a text."""
    raw = raw_arguments(arguments)
    is_whole = fits(raw) and isinstance(arguments, dict)
    fields: Payload = {"args": arguments} if is_whole else {}
    return _call(speaker, name, call_id, id_, at, status="start", args_raw=bounded(raw), **fields, **more)


def call_ended(
    speaker: SessionSpeaker,
    name: str,
    call_id: str | None,
    output: object,
    id_: str,
    at: str | None = None,
    *,
    error: str | None = None,
    duration_ms: object = None,
) -> SessionEvent:
    """Return the end of a tool call as an event; `error` says that it failed, and how."""
    text = output if isinstance(output, str) else "" if output is None else encoded(output)
    shown = bounded(error) if error is not None else text
    return _call(
        speaker,
        name,
        call_id,
        id_,
        at,
        status="success" if error is None else "error",
        output=output if fits(text) else bounded(text),
        output_bytes=len(text.encode("utf-8", "replace")),
        result_summary=shown if len(shown) <= SUMMARY else f"{shown[:SUMMARY]}…",
        error=None if error is None else bounded(error),
        duration_ms=duration_ms if type(duration_ms) in (int, float) else None,
    )


def raw_arguments(arguments: object) -> str:
    """Return arguments as the text that the record stores."""
    return arguments if isinstance(arguments, str) else encoded(arguments)


def encoded(value: object) -> str:
    """Return compact JSON. Lone surrogates become question marks."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(_fit(value)).decode()


def object_of(value: object) -> object:
    """Parse a text that holds a JSON object; return every other value unchanged."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return value


def bounded(text: str) -> str:
    """Shorten a text that is too long for one event, and say how much is left out."""
    most = fitting_length(text)
    return text if most == len(text) else f"{text[:most]}… ({len(text) - most:,} more characters)"


def text_in(content: object) -> str:
    """Return the text of a message's content: a text, or the texts among its parts; other parts as `[type]`."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(text for part in parts if (text := _part(part)))


def _part(part: object) -> str:
    if not isinstance(part, dict):
        return part if isinstance(part, str) else ""
    text = text_of(part.get("text"))
    return text if text is not None else f"[{text_of(part.get('type')) or 'part'}]"


def _call(
    speaker: SessionSpeaker, name: str, call_id: str | None, id_: str, at: str | None, **fields: object
) -> SessionEvent:
    return _streamed(speaker, "tool_step", id_, at, name=name[:200] or "tool", tool_call_id=call_id, **fields)


def _streamed(speaker: SessionSpeaker, kind: str, id_: str, at: str | None, **fields: object) -> SessionEvent:
    payload = {"event": kind, "id": id_, "agent": speaker.agent, "created_at": at, **fields}
    return SessionEvent(_without_none(payload, speaker))


def _envelope(
    speaker: SessionSpeaker, kind: str, text: str, id_: str, at: str | None, ends: Payload, metadata: Payload
) -> SessionEvent:
    kept_fields = {name: value for name, value in metadata.items() if value is not None}
    payload = {"id": id_, "type": kind, **ends, "content": bounded(text), "metadata": kept_fields, "created_at": at}
    return SessionEvent(_without_none(payload, speaker), "chat")


def _without_none(payload: Payload, speaker: SessionSpeaker) -> Payload:
    fields = {name: value for name, value in payload.items() if value is not None}
    return fields | {"conversation_id": speaker.conversation}


def _fit(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_fit(item) for item in value]
    if isinstance(value, dict):
        return {_fit(name): _fit(item) for name, item in value.items()}
    return value
