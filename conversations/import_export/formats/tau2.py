"""tau2-bench results: `{"simulations": [{"id", "task_id", "messages": […]}]}`, each simulation one conversation.

| in the file | here |
|---|---|
| `id` (else the place, from 1) | the conversation's name, after the file's |
| the first words of the user | the title |
| role `user`, `assistant` with content | message between `user` and `agent:assistant` |
| role `system` | control from `system` to `agent:assistant` |
| `tool_calls[]` | tool_step start: `id`, `name`, `arguments`; the caller is `requestor`: `user` or `agent:assistant` |
| role `tool` (also inside `tool_messages`) | tool_step success, or error when `error` is true; output is the content |
| `timestamp` (no zone: UTC) | `created_at`, the pace, and `duration_ms` of a call |
| `turn_idx`, `cost`, `usage` | metadata of the message |
| `raw_data` (the provider's answer once more), tasks, rewards | left out |

Counters: messages = user and assistant messages, except those that only call tools; tool_calls = `tool_calls` made
by either side; errors = tool messages with `error`.
"""

from collections.abc import Iterator
from typing import Any

from conversations.core.errors import Invalid
from conversations.core.json_values import text_of
from conversations.import_export.fields import ConversationNames
from conversations.import_export.file_reader import RecordingFile, parts
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import (
    FileTimes,
    Moment,
    RecordedStep,
    Recording,
    caption,
    control,
    decoded,
    message_step,
)
from conversations.import_export.tool_call_pairing import Open, OpenToolCalls

NAME = "tau2-bench simulations"
READS = ("document",)
KEPT = ("turn_idx", "cost", "usage")


def fits(sample: object) -> bool:
    """Return whether a document is of this format."""
    return isinstance(sample, dict) and isinstance(sample.get("simulations"), list)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one simulation after another."""
    document = source.document()
    simulations = (decoded(raw) for raw in parts(document["simulations"])) if isinstance(document, dict) else ()
    names = ConversationNames()
    for number, simulation in enumerate(simulations):
        location = f"simulations[{number}]"
        if not isinstance(simulation, dict) or not isinstance(simulation.get("messages"), list):
            report.add_problem(location, "must be a simulation with a list of messages")
            continue
        id_, messages = text_of(simulation.get("id")) or "", simulation["messages"]
        name = names.of(f"{source.stem}-{id_.strip() or number + 1}")
        steps = _steps(messages, f"{location}.messages", report)
        yield Recording(name, _title_of(messages), steps, is_named_after_file=True)


def _title_of(messages: list[Any]) -> str:
    users = (m for m in messages if isinstance(m, dict) and m.get("role") == "user" and m.get("content"))
    return caption(next(users, {}).get("content"))


def _steps(messages: list[Any], location: str, report: ImportReport) -> Iterator[RecordedStep]:
    simulation = _Simulation()
    for number, message in enumerate(_flat(messages)):
        with report.reporting(f"{location}[{number}]"):
            yield from simulation.steps(f"{location}[{number}]", message)


def _flat(messages: list[Any]) -> Iterator[Any]:
    for message in messages:
        inner = message.get("tool_messages") if isinstance(message, dict) else None
        yield from inner if isinstance(inner, list) else [message]


class _Simulation:
    """One conversation while it is read."""

    def __init__(self) -> None:
        self._calls, self._times = OpenToolCalls(), FileTimes()

    def steps(self, location: str, message: object) -> list[RecordedStep]:
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(message, dict) or role not in ("user", "assistant", "system", "tool"):
            raise Invalid("must be a message with the role user, assistant, system or tool")
        moment = self._times.of(message.get("timestamp"))
        if role == "tool":
            return [self._result(location, message, moment)]
        calls = _calls_in(message)
        return self._words(location, message, moment, has_calls=bool(calls)) + [
            self._calls.start(
                Open(call["id"], call["name"], _caller(call.get("requestor", role)), moment.offset),
                call.get("arguments"),
                moment=moment,
                location=location,
            )
            for call in calls
        ]

    def _words(self, location: str, message: dict[str, Any], moment: Moment, *, has_calls: bool) -> list[RecordedStep]:
        content = message.get("content") or ""
        if not isinstance(content, str):
            raise Invalid(f"content must be a string or null; got {type(content).__name__}")
        if has_calls and not content.strip():
            return []
        ends = {"user": ("user", "agent:assistant"), "assistant": ("agent:assistant", "user")}
        sender, recipient = ends.get(message["role"], ("system", "agent:assistant"))
        make = control if message["role"] == "system" else message_step
        metadata = {name: message[name] for name in KEPT if message.get(name) is not None}
        return [make(sender, recipient, content, moment=moment, location=location, **metadata)]

    def _result(self, location: str, message: dict[str, Any], moment: Moment) -> RecordedStep:
        call_id = message.get("id")
        return self._calls.finish(
            text_of(call_id),
            message.get("content"),
            failed=message.get("error") is True,
            moment=moment,
            location=location,
        )


def _caller(requestor: object) -> str:
    return "user" if requestor == "user" else "agent:assistant"


def _calls_in(message: dict[str, Any]) -> list[dict[str, Any]]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise Invalid("tool_calls must be a list")
    for call in calls:
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise Invalid("tool call must have a name")
        call["id"] = call.get("id") if isinstance(call.get("id"), str) else None
    return calls
