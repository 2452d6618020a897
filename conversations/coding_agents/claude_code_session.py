"""Session files of Claude Code (`~/.claude/projects/…/SESSION.jsonl`), a line at a time. Not a stable format: what is
not known is passed over.

| line | here |
|---|---|
| `user` with text | message from `user`; of the program itself (`isMeta`, `isCompactSummary`, outputs) a control |
| `user` with `tool_result` | the end of that tool call, failed with `is_error` |
| `assistant` with text | output; with `isApiErrorMessage` a model call that failed |
| `assistant` with `tool_use` | the start of a tool call with that id |
| `usage` of the lines of one `message.id` | one model call, with what the last of them says; others may come between |
| `summary`, `system` with content | control |
| `isSidechain` | as above, by `Claude Code/AGENT`; its prompt is a message of Claude Code |
| thinking, snapshots, queue operations and others | left out |

Counters: messages = user lines with text that are the person's, and assistant lines with text; tool_calls =
`tool_use` parts; errors = results with `is_error`, and errors of the API.
"""

from collections import deque
from datetime import UTC, datetime
from typing import NamedTuple

from conversations.coding_agents import session_events
from conversations.coding_agents.session_events import Payload, SessionEvent, SessionSpeaker
from conversations.coding_agents.session_lines import Line, ToolCallIds, line_key, usage_of
from conversations.core.errors import Invalid
from conversations.core.json_values import text_of

TOOL, AGENT = "claude-code", "Claude Code"
SPOKEN = ("user", "assistant")
OF_PROGRAM = (
    "<local-command-", "<bash-stdout>", "<bash-stderr>", "<task-notification>", "[Request interrupted by user",
    "Caveat: The messages below were generated",
)  # fmt: skip
PROGRAM_FLAGS = ("isMeta", "isCompactSummary")
MAX_PAUSE_S = 600.0  # between the lines of an answer: a block of it may take minutes
INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class _Answer(NamedTuple):
    """An answer whose lines are being read: its message's id, and its usage as of the newest line."""

    message: str
    usage: dict[str, int]
    speaker: SessionSpeaker
    model: object
    at: str | None


def is_line(value: object) -> bool:
    """Return whether a line is from such a file and names the session."""
    return isinstance(value, dict) and isinstance(value.get("sessionId"), str) and isinstance(value.get("type"), str)


class ClaudeCodeSession:
    """The lines of one file. `first` is a line that names the session (`is_line`)."""

    def __init__(self, first: Line) -> None:
        self._session = str(first["sessionId"])
        sub_agent = text_of(first.get("agentId")) if first.get("isSidechain") is True else None
        conversation = session_events.conversation_of(TOOL, self._session, sub_agent or "")
        self.speaker = SessionSpeaker(AGENT, conversation)
        self._call_ids = ToolCallIds(TOOL, self._session)
        self._names: dict[str, deque[str]] = {}  # of open calls, by their ids
        self._answers: dict[str, _Answer] = {}  # that may still go on, by their agents
        self._counted_answers: set[str] = set()  # answers whose model call is made

    def events(self, line: Line) -> list[SessionEvent]:
        """Return the events of a line. Raises Invalid."""
        kind = line.get("type")
        if kind not in SPOKEN:
            if not isinstance(kind, str):
                raise Invalid("must be an object with a type, as Claude Code writes them")
            return self._notice(line, kind)
        message = line.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("content"), (str, list)):
            raise Invalid(f"message of type {kind} must be an object with content, a string or a list")
        speaker = self._speaker(line)
        if kind == "user":
            return self._user(line, message["content"], speaker)
        if line.get("isApiErrorMessage") is True:
            return [*self._ended_answer(speaker.agent), self._api_error(line, message["content"], speaker)]
        return [*self._assistant(line, message, speaker), *self._spent(line, message, speaker)]

    def rest(self, *, is_over: bool) -> list[SessionEvent]:
        """Return the model calls of the last answers, except of those that may still be written: their usage would stay
        too low, because an event is stored once."""
        ended = [agent for agent, answer in self._answers.items() if is_over or not _is_recent(answer.at)]
        return [event for agent in ended for event in self._ended_answer(agent)]

    def _speaker(self, line: Line) -> SessionSpeaker:
        if line.get("isSidechain") is not True:
            return self.speaker
        return self.speaker._replace(agent=f"{AGENT}/{text_of(line.get('agentId')) or 'sub-agent'}"[:190])

    def _user(self, line: Line, content: str | list[object], speaker: SessionSpeaker) -> list[SessionEvent]:
        results, texts = _parts(content, "tool_result"), _texts(content)
        events = [self._result(line, part, speaker) for part in results]
        if not texts:
            return events
        id_, at, words = self._id(line, "said"), _at(line), "\n".join(texts)
        if any(line.get(flag) is True for flag in PROGRAM_FLAGS) or words.startswith(OF_PROGRAM):
            return [*events, session_events.notice(speaker, words, id_, at)]
        if line.get("isSidechain") is True:
            return [*events, session_events.handed(self.speaker, speaker.agent, words, id_, at)]
        return [*events, *self._ended_answer(speaker.agent), session_events.prompt(speaker, words, id_, at)]

    def _api_error(self, line: Line, content: str | list[object], speaker: SessionSpeaker) -> SessionEvent:
        words = "\n".join(_texts(content)) or "failed"
        return session_events.model_call(speaker, {}, self._id(line, "error"), _at(line), error=words)

    def _assistant(self, line: Line, message: Payload, speaker: SessionSpeaker) -> list[SessionEvent]:
        events, content = list[SessionEvent](), message["content"]
        if texts := [text for text in _texts(content) if text.strip()]:
            events.append(session_events.answer(speaker, "\n\n".join(texts), self._id(line, "said"), _at(line)))
        for part in _parts(content, "tool_use"):
            call, name = text_of(part.get("id")), text_of(part.get("name")) or "tool"
            if call is not None:
                self._names.setdefault(call, deque()).append(name)
            id_ = self._call_ids.started(call, _key(line)) if call else self._id(line, name)
            events.append(
                session_events.call_started(speaker, name, call, part.get("input"), id_, _at(line), origin=TOOL)
            )
        return events

    def _result(self, line: Line, part: Payload, speaker: SessionSpeaker) -> SessionEvent:
        call = text_of(part.get("tool_use_id"))
        names = self._names.get(call or "")
        output = part.get("content")
        text = session_events.text_in(output) if isinstance(output, list) else output
        failed = part.get("is_error") is True
        error = (text if isinstance(text, str) else session_events.encoded(text)) if failed else None
        id_ = self._call_ids.ended(call, _key(line)) if call else self._id(line, "result")
        name = names.popleft() if names else "tool"
        return session_events.call_ended(speaker, name, call, text, id_, _at(line), error=error)

    def _spent(self, line: Line, message: Payload, speaker: SessionSpeaker) -> list[SessionEvent]:
        """Note an answer's usage; return the model call of the agent's answer before it, and its own once a line has a
        `stop_reason`, which many versions never write."""
        ended = list[SessionEvent]()
        usage = usage_of(
            message.get("usage"), inputs=INPUTS, cached=INPUTS[2], output="output_tokens", written=INPUTS[1]
        )
        name, agent = text_of(message.get("id")), speaker.agent
        if agent in self._answers and self._answers[agent].message != name:
            ended = self._ended_answer(agent)
        if usage and name is not None and name not in self._counted_answers:
            self._answers[agent] = _Answer(name, usage, speaker, message.get("model"), _at(line))
            if text_of(message.get("stop_reason")) is not None:
                ended += self._ended_answer(agent)
        return ended

    def _ended_answer(self, agent: str) -> list[SessionEvent]:
        spent = self._answers.pop(agent, None)
        if spent is None:
            return []
        self._counted_answers.add(spent.message)
        id_ = session_events.derived_id(TOOL, self._session, "usage", spent.message)
        return [session_events.model_call(spent.speaker, spent.usage, id_, spent.at, model=spent.model)]

    def _notice(self, line: Line, kind: str) -> list[SessionEvent]:
        words = text_of(line.get("summary")) or text_of(line.get("content"))
        if kind not in ("summary", "system") or not words:
            return []
        about = f"Summary: {words}" if kind == "summary" else words
        return [session_events.notice(self.speaker, about, self._id(line, kind), _at(line))]

    def _id(self, line: Line, what: str) -> str:
        own = text_of(line.get("uuid")) or text_of(line.get("leafUuid")) or session_events.encoded(line)
        return session_events.derived_id(TOOL, self._session, what, own)


def _key(line: Line) -> str:
    return line_key(line, "uuid")


def _at(line: Line) -> str | None:
    return text_of(line.get("timestamp"))


def _is_recent(at: str | None) -> bool:
    """Return whether an answer may still be written whose newest line has this time."""
    try:
        moment = datetime.fromisoformat(at or "")
    except ValueError:
        return False
    age = datetime.now(UTC) - (moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    return abs(age.total_seconds()) < MAX_PAUSE_S


def _parts(content: str | list[object], kind: str) -> list[Payload]:
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") == kind]


def _texts(content: str | list[object]) -> list[str]:
    """Return a message's texts; an image or a document by its type."""
    if isinstance(content, str):
        return [content] if content.strip() else []
    texts = list[str]()
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and part.get("type") in ("text", "image", "document"):
            texts.append(text_of(part.get("text")) or f"[{part['type']}]")
    return texts
