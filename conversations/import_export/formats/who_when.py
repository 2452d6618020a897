"""Who&When failure logs: `{"history": […], "question", "question_ID"}`, one conversation a file.

| in the file | here |
|---|---|
| `question` | the title |
| `name`, else `role`: `WebSurfer` | message from `agent:WebSurfer` to the one that asked it, else to the conversation |
| role `Orchestrator (-> WebSurfer)` | message from `agent:Orchestrator` to `agent:WebSurfer` |
| role `Orchestrator (thought)`, `… (termination condition)` | control to the conversation; which: `metadata.about` |
| role `human` | message from `human` to the conversation |
| role beside a `name` | `metadata.role` |
| `mistake_agent`, `mistake_step`, answers, prompts | left out: they were added by those who judged the log |

Entries with empty content are entries too. Counters: messages = entries of history without those two kinds of
control; tool_calls and errors are 0, the format has none.
"""

import re
from collections.abc import Iterator
from typing import Any

from conversations.core.errors import Invalid
from conversations.import_export.file_reader import RecordingFile, parts
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import (
    HERE,
    Moment,
    RecordedStep,
    Recording,
    caption,
    control,
    decoded,
    message_step,
)

NAME = "Who&When history"
READS = ("document",)
PERSON = "human"

_ROLE = re.compile(r"(?P<name>.+?) \((?P<about>.+)\)", re.DOTALL)
_TO = "-> "


def fits(sample: object) -> bool:
    """Return whether a document is of this format."""
    return isinstance(sample, dict) and isinstance(sample.get("history"), list)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read the one recording."""
    document = source.document()
    if isinstance(document, dict):
        question = decoded(document["question"]) if "question" in document else ""
        history = (decoded(raw) for raw in parts(document["history"]))
        yield Recording(source.stem, caption(question), _steps(history, report), is_named_after_file=True)


def _steps(history: Iterator[Any], report: ImportReport) -> Iterator[RecordedStep]:
    last_speakers: dict[str, str] = {}  # who last spoke to this agent
    for number, entry in enumerate(history):
        location = f"history[{number}]"
        with report.reporting(location):
            yield _step(entry, location, last_speakers)


def _step(entry: object, location: str, last_speakers: dict[str, str]) -> RecordedStep:
    content = entry.get("content") if isinstance(entry, dict) else None
    role = entry.get("name") or entry.get("role") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or not isinstance(content, str) or not isinstance(role, str) or not role.strip():
        raise Invalid("must be an entry with content and a name or role")
    match = _ROLE.fullmatch(role)
    sender = _called(match["name"] if match else role)
    about = match["about"] if match else ""
    if about and not about.startswith(_TO):
        return control(sender, HERE, content, moment=Moment(), location=location, about=about)
    recipient = last_speakers.get(sender, HERE)
    if about:
        recipient = _called(about.removeprefix(_TO))
        last_speakers[recipient] = sender
    beside = entry.get("role") if entry.get("name") else None
    return message_step(sender, recipient, content, moment=Moment(), location=location, role=beside)


def _called(name: str) -> str:
    return name if name == PERSON else f"agent:{name.strip()}"
