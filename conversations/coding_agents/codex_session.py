"""Session files of Codex (`~/.codex/sessions/…/rollout-….jsonl`), a line at a time: `{timestamp, type, payload}`.

| line | here |
|---|---|
| `session_meta` | control: where it runs |
| `response_item` `message` of `user` | message from `user`; what the program adds a control |
| `response_item` `message` of `assistant` | output |
| `function_call`, `custom_tool_call`, `local_shell_call` | the start of a tool call with that `call_id` |
| `function_call_output`, `custom_tool_call_output` | its end, failed where it says `success: false` or an exit code |
| `event_msg` `token_count` with `last_token_usage` | model call, unless `total_token_usage` is unchanged |
| `event_msg` `error`, `turn_aborted`; `compacted` | control |
| other `event_msg` (messages a second time), reasoning, `turn_context` and others | left out |

Counters: messages = user and assistant messages with text, without what the program adds; tool_calls = calls; errors =
failed outputs.
"""

from collections import deque

from conversations.coding_agents import session_events
from conversations.coding_agents.session_events import Payload, SessionEvent, SessionSpeaker
from conversations.coding_agents.session_lines import Line, LineIds, ToolCallIds, line_key, usage_of
from conversations.core.errors import Invalid
from conversations.core.json_values import text_of

TOOL, AGENT = "codex", "Codex"
TYPES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted")
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")
OF_PROGRAM = (
    "<environment_context>", "<user_instructions>", "<permissions", "<skill>", "<turn_aborted>",
    "<subagent_notification>", "<user_shell_command>", "# AGENTS.md instructions",
)  # fmt: skip


def is_line(value: object) -> bool:
    """Return whether a line is the first of such a file, which names the session."""
    if not isinstance(value, dict) or value.get("type") != "session_meta":
        return False
    payload = value.get("payload")
    return isinstance(payload, dict) and isinstance(payload.get("id"), str)


class CodexSession:
    """The lines of one file. `first` is its `session_meta` (`is_line`)."""

    def __init__(self, first: Line) -> None:
        self._session = str(first["payload"]["id"])
        self.speaker = SessionSpeaker(AGENT, session_events.conversation_of(TOOL, self._session))
        self._ids = LineIds(TOOL, self._session)
        self._call_ids = ToolCallIds(TOOL, self._session)
        self._names: dict[str, deque[str]] = {}
        self._model: str | None = None
        self._total: object = None  # of the session's tokens, as last written

    def events(self, line: Line) -> list[SessionEvent]:
        """Return the events of a line. Raises Invalid."""
        kind, payload = line.get("type"), line.get("payload")
        if not isinstance(kind, str) or not isinstance(payload, dict):
            raise Invalid(f"must be an object with a type ({', '.join(TYPES)}) and a payload")
        at = text_of(line.get("timestamp"))
        if kind == "response_item":
            return self._item(line, payload, at)
        if kind == "turn_context":
            self._model = text_of(payload.get("model")) or self._model
            return []
        words = _words(kind, payload)
        if words:
            return [session_events.notice(self.speaker, words, self._ids.of(line), at)]
        return self._spent(line, payload, at)

    def rest(self, *, is_over: bool) -> list[SessionEvent]:
        """Return nothing: each line is complete by itself."""
        return []

    def _item(self, line: Line, item: Payload, at: str | None) -> list[SessionEvent]:
        kind = item.get("type")
        if kind == "message":
            return self._message(line, item, at)
        if kind in CALLS:
            return [self._call(line, item, at)]
        if kind in OUTPUTS:
            return [self._output(line, item, at)]
        return []

    def _message(self, line: Line, item: Payload, at: str | None) -> list[SessionEvent]:
        role, content = item.get("role"), item.get("content")
        if not isinstance(role, str) or not isinstance(content, (str, list)):
            raise Invalid("payload must be a message with a role and content")
        words, id_ = session_events.text_in(content), self._ids.of(line)
        if not words.strip():
            return []
        if role == "assistant":
            return [session_events.answer(self.speaker, words, id_, at)]
        if role != "user" or words.lstrip().startswith(OF_PROGRAM):
            return [session_events.notice(self.speaker, words, id_, at)]
        return [session_events.prompt(self.speaker, words, id_, at)]

    def _call(self, line: Line, item: Payload, at: str | None) -> SessionEvent:
        call = text_of(item.get("call_id")) or text_of(item.get("id"))
        name = text_of(item.get("name")) or str(item["type"]).removesuffix("_call")
        if call is not None:
            self._names.setdefault(call, deque()).append(name)
        arguments = next((item[key] for key in ("arguments", "input", "action") if key in item), None)
        id_ = self._call_ids.started(call, line_key(line)) if call else self._ids.of(line)
        return session_events.call_started(
            self.speaker, name, call, session_events.object_of(arguments), id_, at, origin=TOOL
        )

    def _output(self, line: Line, item: Payload, at: str | None) -> SessionEvent:
        call, output = text_of(item.get("call_id")), session_events.object_of(item.get("output"))
        names = self._names.get(call or "")
        inner = output.get("content", output.get("output", output)) if isinstance(output, dict) else output
        error = session_events.raw_arguments(inner) if _has_failed(output) else None
        id_ = self._call_ids.ended(call, line_key(line)) if call else self._ids.of(line)
        name = names.popleft() if names else "tool"
        return session_events.call_ended(self.speaker, name, call, inner, id_, at, error=error)

    def _spent(self, line: Line, payload: Payload, at: str | None) -> list[SessionEvent]:
        info = payload.get("info")
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        usage = usage_of(last, inputs=("input_tokens",), cached="cached_input_tokens", output="output_tokens")
        if payload.get("type") != "token_count" or not usage or not self._is_new(info):
            return []
        return [session_events.model_call(self.speaker, usage, self._ids.of(line), at, model=self._model)]

    def _is_new(self, info: object) -> bool:
        """Return whether it counts a call that was not counted: a change of the rate limits repeats the last counts."""
        total, before = info.get("total_token_usage") if isinstance(info, dict) else None, self._total
        self._total = total
        return total is None or total != before


def _words(kind: str, payload: Payload) -> str:
    """Return on one line what is not part of the conversation."""
    if kind == "session_meta":
        version, place = text_of(payload.get("cli_version")) or "", text_of(payload.get("cwd")) or ""
        return f"Session of Codex {version}".strip() + (f" in {place}" if place else "")
    if kind == "compacted":
        return f"Compacted: {text_of(payload.get('message')) or ''}".rstrip(": ")
    if payload.get("type") == "error":
        return f"Error: {text_of(payload.get('message')) or ''}".rstrip(": ")
    if payload.get("type") == "turn_aborted":
        return f"Turn aborted: {text_of(payload.get('reason')) or ''}".rstrip(": ")
    return ""


def _has_failed(output: object) -> bool:
    if not isinstance(output, dict):
        return False
    metadata = output.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    return output.get("success") is False or (type(code) is int and code != 0)
