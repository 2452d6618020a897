"""Messages of a framework as steps of a recording: what each format reads into `RecordedMessage`s, made alike for all.

| in a message | here |
|---|---|
| role user, assistant | message; from the person, from `agent:NAME` |
| role system; `about` | control |
| calls | tool_step start; the same id used again is another call |
| results, also of role tool | tool_step success or error |
| `usage`, `error` | model.call |
| `handoff` | agent.handoff |
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from conversations.core.ids import text_digest
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import (
    HERE,
    FileTimes,
    Moment,
    RecordedStep,
    Recording,
    caption,
    control,
    message_step,
    stream,
)
from conversations.import_export.tool_call_pairing import Open, OpenToolCalls
from conversations.telemetry.span_facts import NOTHING_SPENT, Message, Usage

PERSON = "user"


@dataclass(frozen=True, slots=True)
class RecordedMessage:
    """One message, whose it is, and what beside it is known. `failed`: the results that say that a call failed, by id;
    `person`: who the user is, `recipient`: to whom it goes, where the source tells; `id`: the source's own for it,
    which makes the ids of its events independent of all else in it."""

    message: Message
    agent: str
    at: object = None  # a time as `FileTimes` reads it
    location: str = ""
    recipient: str = HERE
    person: str = PERSON
    model: str = ""
    usage: Usage = NOTHING_SPENT
    error: str = ""
    handoff: str = ""  # to whom the agent gives over
    about: str = ""  # what it tells of, where it is not part of the conversation
    id: str = ""
    failed: frozenset[str] = field(default_factory=frozenset)


def recording(
    name: str, messages: Iterable[RecordedMessage], report: ImportReport, *, is_named_after_file: bool = False
) -> Recording:
    """Return a recording of complete messages: its title is the first message of the person, else of anyone."""
    items = list(messages)
    spoken = [item.message for item in items if item.message.text.strip() and item.message.role != "system"]
    first = next((message for message in spoken if message.role == "user"), spoken[0] if spoken else None)
    return Recording(name, caption(first.text if first else ""), steps_of(items, report), is_named_after_file)


def steps_of(messages: Iterable[RecordedMessage], report: ImportReport) -> Iterator[RecordedStep]:
    """Yield the steps of messages; what does not match is reported and left out."""
    maker = _Maker(report)
    for item in messages:
        for part, step in maker.steps(item):
            yield _with_id(step, item.id, part) if item.id else step


def _with_id(step: RecordedStep, message_id: str, part: str) -> RecordedStep:
    id_ = text_digest(f"{message_id}\n{part}")[:32]
    return replace(step, payload={**step.payload, "id": id_}, has_own_id=True)


class _Maker:
    """One conversation while its steps are made."""

    def __init__(self, report: ImportReport) -> None:
        self._trouble = report
        self._calls, self._times = OpenToolCalls(), FileTimes()

    def steps(self, item: RecordedMessage) -> Iterator[tuple[str, RecordedStep]]:
        """Yield each step of a message, with the name of the part that it is."""
        moment = self._times.of(item.at)
        if item.message.text.strip():
            yield "text", self._words(item, moment)
        if item.usage != NOTHING_SPENT or item.error:
            yield "answer", self._answer(item, moment)
        for number, call in enumerate(item.message.calls):
            opened = Open(call.id or None, call.name, f"agent:{item.agent}", moment.offset)
            arguments = {} if call.args is None else call.args
            step = self._calls.start(opened, arguments, moment=moment, location=item.location)
            yield f"call {number}", step
        for number, result in enumerate(item.message.results):
            is_failed = result.id in item.failed
            with self._trouble.reporting(item.location):
                step = self._calls.finish(
                    result.id or None, result.output, failed=is_failed, moment=moment, location=item.location
                )
                yield f"result {number}", step
        if item.handoff:
            names = {"from_agent": item.agent, "to_agent": item.handoff, "agent": item.agent}
            yield "handoff", stream("agent.handoff", moment, item.location, **names)

    def _words(self, item: RecordedMessage, moment: Moment) -> RecordedStep:
        text, agent = item.message.text, f"agent:{item.agent}"
        reasoning = item.message.reasoning or None
        if item.message.role == "system":
            return control("system", item.recipient, text, moment=moment, location=item.location)
        if item.about:
            return control(agent, item.recipient, text, moment=moment, location=item.location, about=item.about)
        sender = item.person if item.message.role == "user" else agent if item.message.role == "assistant" else "tool"
        return message_step(sender, item.recipient, text, moment=moment, location=item.location, reasoning=reasoning)

    def _answer(self, item: RecordedMessage, moment: Moment) -> RecordedStep:
        spent = item.usage
        usage: dict[str, object] = {"input_tokens": spent.input, "output_tokens": spent.output}
        usage |= spent.of_cache
        return stream(
            "model.call", moment, item.location, agent=item.agent, model=item.model or None,
            usage=usage if spent != NOTHING_SPENT else None, error=item.error or None,
        )  # fmt: skip
