"""Inspect's logs of evaluations: `.eval` (a zip archive) and `.json`. Read as the files they are, without `inspect_ai`
(325 MiB with what it needs, 4 s to import).

| in the file | here |
|---|---|
| a sample: `samples/*.json`, `samples[]` | one conversation: task, evaluation, sample and epoch |
| `messages[]` with the role user, assistant, system | messages, control |
| `tool_calls[]`, messages with the role tool, their `error` | tool_step start and end |
| events `model`: `output.usage`, `error`, `completed` | tokens, an answer that failed, when the answer came |
| events `tool`: `completed` | when the tool had answered |
| a sample without events: `model_usage` | tokens |
| a sample's `error` | an answer that failed |
| `attachment://…` | the text of the attachment |
| scores, limits, stores, samples that were tried before | left out |
"""

import re
from collections.abc import Iterator
from typing import Any

from conversations.core.errors import Invalid
from conversations.import_export.archive import Archive, open_archive
from conversations.import_export.fields import (
    ConversationNames,
    Fields,
    count_field,
    object_of,
    objects_field,
    text_field,
)
from conversations.import_export.file_reader import ZIP, RecordingFile, parts
from conversations.import_export.import_report import ImportReport
from conversations.import_export.message_recording import RecordedMessage, recording
from conversations.import_export.recording import Recording, decoded
from conversations.telemetry import message_shapes
from conversations.telemetry.span_facts import NOTHING_SPENT, Message, Usage

NAME = "Inspect logs"
READS = ("document", "archive")
HEADER, START = "header.json", "_journal/start.json"  # the latter of one that has not ended
MAX_ATTACHED = 64 << 20  # characters that attachments add to one sample
AGENT = "assistant"

_ATTACHMENT = re.compile(r"attachment://([0-9a-f]{32})")


def fits(sample: object) -> bool:
    """Return whether a document or an archive is of this format."""
    if isinstance(sample, dict):
        return {"version", "status", "eval"} <= sample.keys()
    return isinstance(sample, list) and (HEADER in sample or START in sample)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording after another."""
    if source.begins_with(ZIP):
        with open_archive(source) as archive:
            yield from _of_archive(archive, report)
        return
    document = source.document()
    if isinstance(document, dict):
        log = _Log(decoded(document["eval"]), report)
        samples = parts(document["samples"]) if bytes(document.get("samples", b""))[:1] == b"[" else []
        for number, raw in enumerate(samples):
            yield from log.recordings(decoded(raw), f"samples[{number}]")


def _of_archive(archive: Archive, report: ImportReport) -> Iterator[Recording]:
    header = HEADER if HEADER in archive.names else START
    log = _Log(object_of(decoded(archive.read(header)), "a header of a log").get("eval"), report)
    for name in archive.names:
        if name.startswith("samples/") and name.endswith(".json"):
            with report.reporting(name):
                yield from log.recordings(decoded(archive.read(name)), name)


class _Log:
    """One log while its samples are read."""

    def __init__(self, about: object, report: ImportReport) -> None:
        fields = object_of(about, "a log with eval")
        self._name = "-".join(filter(None, (text_field(fields, "task"), text_field(fields, "eval_id")[:8])))
        self._names, self._trouble = ConversationNames(), report

    def recordings(self, value: object, location: str) -> Iterator[Recording]:
        """Yield a sample; an invalid one is reported."""
        try:
            sample = object_of(value, "a sample")
            if not isinstance(sample.get("id"), str | int):
                raise Invalid("must be a sample with an id")
            messages = list(_Sample(sample, location, self._trouble).messages())
        except Invalid as error:
            self._trouble.add_problem(location, error.message)
            return
        epoch = count_field(sample, "epoch")
        name = f"{self._name}-{sample['id']}" + (f"-{epoch}" if epoch > 1 else "")
        yield recording(self._names.of(name, *([str(epoch)] if epoch > 1 else ())), messages, self._trouble)


class _Sample:
    """One sample while it is read."""

    def __init__(self, sample: Fields, location: str, report: ImportReport) -> None:
        self._sample, self._location, self._trouble = sample, location, report
        attachments = sample.get("attachments")
        self._attachments: Fields = attachments if isinstance(attachments, dict) else {}
        self._attachable = MAX_ATTACHED
        events = objects_field(sample, "events")
        self._answers = [event for event in events if event.get("event") == "model"]
        self._by_message = {_message_id(event): event for event in self._answers}
        self._tools = {text_field(event, "id"): event for event in events if event.get("event") == "tool"}

    def messages(self) -> Iterator[RecordedMessage]:
        """Yield its messages, then models' answers that are in none of them, and its error."""
        covered: set[str] = set()
        for number, value in enumerate(self._spoken()):
            location = f"{self._location}.messages[{number}]"
            with self._trouble.reporting(location):
                fields = object_of(self._attached(value), "a message")
                yield self._message(fields, location)
                covered.add(text_field(fields, "id"))
        for event in self._answers:
            if (message_id := _message_id(event)) not in covered:
                covered |= {message_id} if message_id else set()
                yield self._answer(event, Message("assistant", ""), self._location)
        if not self._answers:
            yield from self._total()
        failure = self._sample.get("error")
        if isinstance(failure, dict):
            words = text_field(failure, "message") or "error"
            yield RecordedMessage(Message("assistant", ""), AGENT, location=self._location, error=words)

    def _spoken(self) -> list[Any]:
        messages = self._sample.get("messages")
        if isinstance(messages, list) and messages:
            return messages
        asked_for = self._sample.get("input")
        return asked_for if isinstance(asked_for, list) else [{"role": "user", "content": asked_for}]

    def _message(self, fields: Fields, location: str) -> RecordedMessage:
        if fields.get("role") not in ("system", "user", "assistant", "tool"):
            raise Invalid("must be a message with the role system, user, assistant or tool")
        error = fields.get("error") if isinstance(fields.get("error"), dict) else None
        message = message_shapes.message_of(_plain(fields, error)) or Message("user", "")
        if event := self._by_message.get(text_field(fields, "id")):
            return self._answer(event, message, location)
        call = self._tools.get(text_field(fields, "tool_call_id"), {})
        failed = frozenset(result.id for result in message.results) if error else frozenset()
        return RecordedMessage(message, AGENT, call.get("completed"), location, failed=failed)

    def _answer(self, event: Fields, message: Message, location: str) -> RecordedMessage:
        output = event.get("output")
        spent = output.get("usage") if isinstance(output, dict) else None
        at = event.get("completed") or event.get("timestamp")
        return RecordedMessage(
            message, AGENT, at, location, model=text_field(event, "model"), usage=_usage(spent),
            error=text_field(event, "error"),
        )  # fmt: skip

    def _total(self) -> Iterator[RecordedMessage]:
        usage = self._sample.get("model_usage")
        for model, spent in usage.items() if isinstance(usage, dict) else ():
            if (total := _usage(spent)) != NOTHING_SPENT:
                yield RecordedMessage(
                    Message("assistant", ""), AGENT, location=self._location, model=model, usage=total
                )

    def _attached(self, value: Any, depth: int = 0) -> Any:
        """Return a value with the texts of its attachments, unless they are too long."""
        if isinstance(value, str):
            return _ATTACHMENT.sub(self._text_of, value) if "attachment://" in value else value
        if depth > 100 or not isinstance(value, dict | list):
            return value
        if isinstance(value, list):
            return [self._attached(item, depth + 1) for item in value]
        return {name: self._attached(item, depth + 1) for name, item in value.items()}

    def _text_of(self, match: re.Match[str]) -> str:
        text = self._attachments.get(match[1])
        if not isinstance(text, str) or len(text) > self._attachable:
            return match[0]
        self._attachable -= len(text)
        return text


def _message_id(event: Fields) -> str:
    """Return the id of the message for a model's answer."""
    output = event.get("output")
    choices = objects_field(output, "choices") if isinstance(output, dict) else []
    message = choices[0].get("message") if choices else None
    return text_field(message, "id") if isinstance(message, dict) else ""


def _plain(fields: Fields, error: Fields | None) -> Fields:
    """Return a message as other sources have it: with their names for reasoning and calls."""
    content = fields.get("content")
    if isinstance(content, list):
        content = [_part(part) for part in content]
    calls = [{**call, "function": {"name": call.get("function")}} for call in objects_field(fields, "tool_calls")]
    if error is not None:
        content = content or text_field(error, "message") or "error"
    return {**fields, "content": content, "tool_calls": calls, "type": ""}


def _part(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") == "reasoning":
        return {"type": "reasoning", "text": text_field(part, "summary") or text_field(part, "reasoning")}
    return part


def _usage(spent: object) -> Usage:
    fields: Fields = spent if isinstance(spent, dict) else {}
    cached = count_field(fields, "input_tokens_cache_read")
    written = count_field(fields, "input_tokens_cache_write")
    whole = count_field(fields, "input_tokens") + cached + written
    return Usage(whole, count_field(fields, "output_tokens"), cached, written)
