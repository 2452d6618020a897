"""tau-bench few-shot lines: `{"messages_display": "user: …\\nassistant: …\\ntool: …"}`, each line one conversation.

| in the file | here |
|---|---|
| a line of text that begins with `user: ` or `assistant: ` | message between `user` and `agent:assistant` |
| text lines after it | more of the same message |
| `assistant: None` | nothing: it only says that a tool was called |
| `tool: …` | tool_step start and success (error when it begins with `Error` and a colon) |
| the call's name, arguments and id | not in the file: the name is `tool`, the arguments are empty, there is no id |

Counters: messages = user and assistant texts that are not `None`; tool_calls = tool texts; errors = those that begin
with `Error:`.
"""

import re
from collections.abc import Iterator

from conversations.import_export.file_reader import RecordingFile
from conversations.import_export.formats.openai_chat import is_error
from conversations.import_export.import_report import ImportReport
from conversations.import_export.recording import Moment, RecordedStep, Recording, caption, message_step
from conversations.import_export.tool_call_pairing import Open, OpenToolCalls

NAME = "tau-bench display lines"
READS = ("lines",)
FIELD = "messages_display"

_START = re.compile(r"^(user|assistant|tool): ?", re.MULTILINE)


def fits(sample: object) -> bool:
    """Return whether a line is of this format."""
    return isinstance(sample, dict) and isinstance(sample.get(FIELD), str)


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording for each line."""
    for location, value in report.objects(source):
        text = value.get(FIELD)
        if not isinstance(text, str):
            report.add_problem(location, f"must be an object with {FIELD}")
            continue
        said_parts = _parts(text)
        title = next((content for role, content in said_parts if role == "user"), "")
        number = location.removeprefix("line ")
        steps = _steps(text, location, report)
        yield Recording(f"{source.stem}-{number}", caption(title), steps, is_named_after_file=True)


def _steps(text: str, location: str, report: ImportReport) -> Iterator[RecordedStep]:
    if not _START.match(text):
        report.add_problem(f"{location}, {FIELD}", "must begin with user:, assistant: or tool:")
    calls = OpenToolCalls()
    for number, (role, content) in enumerate(_parts(text)):
        where = f"{location}, part {number + 1}"
        if role == "tool":
            yield calls.start(Open(None, "tool", "agent:assistant", None), {}, moment=Moment(), location=where)
            yield calls.finish(None, content, failed=is_error(content), moment=Moment(), location=where)
        elif role == "user":
            yield message_step("user", "agent:assistant", content, moment=Moment(), location=where)
        elif content != "None":
            yield message_step("agent:assistant", "user", content, moment=Moment(), location=where)


def _parts(text: str) -> list[tuple[str, str]]:
    """Cut the text where a role begins a line."""
    pieces = _START.split(text)[1:]
    return [(role, content.removesuffix("\n")) for role, content in zip(pieces[::2], pieces[1::2], strict=True)]
