"""Session files of pi (`~/.pi/agent/sessions/…jsonl`), a line at a time.

| line | here |
|---|---|
| `session` | control: where it runs |
| `message` of `user` with text | message from `user` |
| `message` of `assistant` with text | output |
| its `toolCall` parts | the start of a tool call with that id |
| `message` of `toolResult` | its end, failed with `isError` |
| its `usage` | model call; with `stopReason` `error` a failed one |
| `compaction`, `branch_summary` | control |
| thinking, changes of model and thinking level, and others | left out |

Counters: messages = user and assistant messages with text; tool_calls = `toolCall` parts; errors = results with
`isError`, and answers that ended with an error.
"""

from conversations.coding_agents import session_events
from conversations.coding_agents.session_events import Payload, SessionEvent, SessionSpeaker
from conversations.coding_agents.session_lines import Line, LineIds, ToolCallIds, usage_of
from conversations.core.errors import Invalid
from conversations.core.json_values import text_of

TOOL, AGENT = "pi", "pi"


def is_line(value: object) -> bool:
    """Return whether a line is the first of such a file, which names the session."""
    return isinstance(value, dict) and value.get("type") == "session" and isinstance(value.get("id"), str)


class PiSession:
    """The lines of one file. `first` is its `session` (`is_line`)."""

    def __init__(self, first: Line) -> None:
        self._session = str(first["id"])
        self.speaker = SessionSpeaker(AGENT, session_events.conversation_of(TOOL, self._session))
        self._ids = LineIds(TOOL, self._session)
        self._call_ids = ToolCallIds(TOOL, self._session)

    def events(self, line: Line) -> list[SessionEvent]:
        """Return the events of a line. Raises Invalid."""
        kind, at = line.get("type"), text_of(line.get("timestamp"))
        if not isinstance(kind, str):
            raise Invalid("must be an object with a type, as pi writes them")
        if kind == "message":
            message = line.get("message")
            if not isinstance(message, dict) or not isinstance(message.get("role"), str):
                raise Invalid("message must be an object with a role")
            return self._message(self._ids.of(line, "id"), message, at)
        words = _words(kind, line)
        return [session_events.notice(self.speaker, words, self._ids.of(line, "id"), at)] if words else []

    def rest(self, *, is_over: bool) -> list[SessionEvent]:
        """Return nothing: each line is complete by itself."""
        return []

    def _message(self, id_: str, message: Payload, at: str | None) -> list[SessionEvent]:
        role, content = message["role"], message.get("content")
        words = session_events.text_in([part for part in content if _is_said(part)]
                                       if isinstance(content, list) else content)  # fmt: skip
        if role == "toolResult":
            return [self._result(id_, message, words, at)]
        if role == "user":
            return [session_events.prompt(self.speaker, words, id_, at)] if words.strip() else []
        if role != "assistant":
            return [session_events.notice(self.speaker, words, id_, at)] if words.strip() else []
        events = [session_events.answer(self.speaker, words, id_, at)] if words.strip() else []
        calls = [part for part in content if _is(part, "toolCall")] if isinstance(content, list) else []
        events += [self._call(f"{id_}-{n}", part, at) for n, part in enumerate(calls)]
        return events + self._spent(id_, message, at)

    def _call(self, id_: str, part: Payload, at: str | None) -> SessionEvent:
        call, name = text_of(part.get("id")), text_of(part.get("name")) or "tool"
        id_ = self._call_ids.started(call, id_) if call else id_
        return session_events.call_started(self.speaker, name, call, part.get("arguments"), id_, at, origin=TOOL)

    def _result(self, id_: str, message: Payload, words: str, at: str | None) -> SessionEvent:
        call, name = text_of(message.get("toolCallId")), text_of(message.get("toolName")) or "tool"
        id_ = self._call_ids.ended(call, id_) if call else id_
        error = words or "failed" if message.get("isError") is True else None
        return session_events.call_ended(self.speaker, name, call, words, id_, at, error=error)

    def _spent(self, id_: str, message: Payload, at: str | None) -> list[SessionEvent]:
        usage = usage_of(
            message.get("usage"),
            inputs=("input", "cacheRead", "cacheWrite"),
            cached="cacheRead",
            output="output",
            written="cacheWrite",
        )
        failed = message.get("stopReason") == "error"
        error = (text_of(message.get("errorMessage")) or "failed") if failed else None
        if not usage and error is None:
            return []
        model = message.get("model")
        return [session_events.model_call(self.speaker, usage, f"{id_}-model", at, model=model, error=error)]


def _words(kind: str, line: Line) -> str:
    if kind == "session":
        return f"Session of pi in {text_of(line.get('cwd')) or 'an unknown place'}"
    summary = text_of(line.get("summary"))
    return f"Summary: {summary}" if kind in ("compaction", "branch_summary") and summary else ""


def _is(part: object, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind


def _is_said(part: object) -> bool:
    return isinstance(part, str) or _is(part, "text") or _is(part, "image")
