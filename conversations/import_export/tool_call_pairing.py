"""Pair the tool calls of a recording with their results. Call ids may repeat (§5)."""

from collections import defaultdict, deque
from typing import Any, NamedTuple

from conversations.core.errors import Invalid
from conversations.import_export.recording import SUMMARY, Moment, RecordedStep, decoded, encoded, stream


class Open(NamedTuple):
    """A call without a result yet."""

    call_id: str | None
    name: str
    caller: str
    offset: float | None


class OpenToolCalls:
    """The open calls of one conversation. A repeated id is another call; results are assigned in order."""

    def __init__(self) -> None:
        self._open: defaultdict[str | None, deque[Open]] = defaultdict(deque)

    def start(self, call: Open, arguments: object, *, moment: Moment, location: str) -> RecordedStep:
        """Return the step that starts a call. Arguments are an object, or the text that was sent."""
        self._open[call.call_id].append(call)
        text = arguments if isinstance(arguments, str) else _text_of(arguments)
        return stream(
            "tool_step",
            moment,
            location,
            **_caller(call),
            name=call.name,
            args=_object_of(arguments),
            args_raw=text,
            status="start",
            tool_call_id=call.call_id,
        )

    def finish(
        self, call_id: str | None, result: object, *, failed: bool, moment: Moment, location: str
    ) -> RecordedStep:
        """Return the step that ends a call, with its result unchanged. Raises Invalid if no such call is open."""
        waiting = self._open.get(call_id)
        if not waiting:
            raise Invalid(f"must be the result of an earlier call; no open call has the id {call_id!r}")
        call = waiting.popleft()
        text = result if isinstance(result, str) else _text_of(result)
        return stream(
            "tool_step",
            moment,
            location,
            **_caller(call),
            name=call.name,
            args={},
            result_summary=text if len(text) <= SUMMARY else f"{text[:SUMMARY]}…",
            output=_value_of(result),
            output_bytes=len(text.encode(errors="replace")),
            status="error" if failed else "success",
            error=text if failed else None,
            duration_ms=_between(call.offset, moment.offset),
            tool_call_id=call_id,
        )


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round((end - start) * 1000, 3)


def _caller(call: Open) -> dict[str, str]:
    """Return the caller: agents by their bare name, everyone else as a sender."""
    prefix, mark, name = call.caller.partition(":")
    return {"agent": name} if mark and prefix == "agent" else {"sender": call.caller}


def _object_of(arguments: object) -> dict[str, Any]:
    value = _value_of(arguments)
    return value if isinstance(value, dict) else {}


def _value_of(value: object) -> object:
    """Parse a text that holds a JSON object or list; any other text stays as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return decoded(value.encode())
    except (Invalid, UnicodeEncodeError):
        return value


def _text_of(value: object) -> str:
    return "" if value is None else encoded(value).decode()
