"""Chats that AutoGen (0.2) printed in a notebook: a notebook (`.ipynb`), or a list of its outputs.

| in the output of a cell | here |
|---|---|
| the standard output of one cell | one conversation, named after the file and the cell (from 0) |
| `NAME (to OTHER):`, then words up to a line of 80 dashes | message from `agent:NAME` to `agent:OTHER` |
| `***** Suggested tool call (ID): NAME *****`, `Arguments:` | tool_step start |
| `***** Response from calling tool (ID) *****` | tool_step success, or error when it begins with `Error:` |
| the older `function`, which has no id | joined by the function's name |
| code that was run, warnings, who is next | left out |

A name is recognized by its colour where the text has colours, so that words which look alike stay words.
"""

import re
from collections.abc import Iterator
from typing import Any

from conversations.core.errors import Invalid
from conversations.import_export.file_reader import RecordingFile, parts
from conversations.import_export.formats.openai_chat import is_error
from conversations.import_export.import_report import ImportReport
from conversations.import_export.message_recording import RecordedMessage, recording
from conversations.import_export.recording import Recording, decoded
from conversations.telemetry.span_facts import Call, Message, Result

NAME = "AutoGen notebooks"
READS = ("document",)

_COLOURED = re.compile(r"\x1b\[33m([^\x1b\n]{1,200})\x1b\[0m \(to ([^\n]{1,200}?)\):\n")
_PLAIN = re.compile(r"^(\S[^\n]{0,199}?) \(to ([^\n]{1,200}?)\):\n", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_END = re.compile(r"^-{80}$", re.MULTILINE)
_CALL = re.compile(
    r"^\*{5} Suggested (?:tool|function) [Cc]all(?: \(([^)\n]{0,200})\))?: ([^\n]{1,200}?) \*{5}\n"
    r"Arguments: ?\n((?:(?!^\*{5} [SR]).)*?)\n\*{5,}$",  # up to the next at most: as many steps as characters
    re.MULTILINE | re.DOTALL,
)
_RESULT = re.compile(
    r"^\*{5} Response from calling (?:tool|function) [\"(]([^\")\n]{0,200})[\")] \*{5}\n"
    r"((?:(?!^\*{5} [SR]).)*?)\n?\*{30,}$",
    re.MULTILINE | re.DOTALL,
)


def fits(sample: object) -> bool:
    """Return whether a document is of this format."""
    if isinstance(sample, list):
        return any(isinstance(item, dict) and "output_type" in item and "cell" in item for item in sample)
    return isinstance(sample, dict) and isinstance(sample.get("cells"), list) and "nbformat" in sample


def read(source: RecordingFile, report: ImportReport) -> Iterator[Recording]:
    """Read one recording after another."""
    count = 0
    for cell, text in _texts(source, report).items():
        if messages := list(_messages(text, f"cell {cell}")):
            count += 1
            yield recording(f"{source.stem}-{cell}", messages, report, is_named_after_file=True)
    if not count:
        raise Invalid("the notebook must contain a chat printed by AutoGen: NAME (to OTHER):")


def _texts(source: RecordingFile, report: ImportReport) -> dict[int, str]:
    """Return what was printed, by cell."""
    texts: dict[int, str] = {}
    for location, number, output in _outputs(source):
        if not isinstance(output, dict) or type(number) is not int:
            report.add_problem(location, "must be an output of a cell: an object with output_type")
        elif output.get("output_type") == "stream" and output.get("name") == "stdout":
            text = output.get("text")
            lines = text if isinstance(text, list) else [text]
            texts[number] = texts.get(number, "") + "".join(line for line in lines if isinstance(line, str))
    return texts


def _outputs(source: RecordingFile) -> Iterator[tuple[str, Any, Any]]:
    document = source.document()
    if isinstance(document, list):
        for number, raw in enumerate(document):
            output = decoded(raw)
            yield f"[{number}]", output.get("cell") if isinstance(output, dict) else None, output
        return
    for number, raw in enumerate(parts(document["cells"])):
        cell = decoded(raw)
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        for n, output in enumerate(outputs if isinstance(outputs, list) else []):
            yield f"cells[{number}].outputs[{n}]", number, output


def _messages(text: str, place: str) -> Iterator[RecordedMessage]:
    header = _COLOURED if _COLOURED.search(text) else _PLAIN
    starts = list(header.finditer(text))
    for number, start in enumerate(starts):
        end = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        body = _COLOUR.sub("", text[start.end() : end])
        if (border := _END.search(body)) is not None:
            body = body[: border.start()]
        yield _message(body, start[1], start[2], f"{place}, message {number + 1}")


def _message(body: str, sender: str, recipient: str, location: str) -> RecordedMessage:
    calls = tuple(Call(match[1] or match[2], match[2], match[3].strip()) for match in _CALL.finditer(body))
    answers = list(_RESULT.finditer(body))
    words = _RESULT.sub("", _CALL.sub("", body)).strip("\n")
    return RecordedMessage(
        Message("assistant", words, calls, tuple(Result(match[1], match[2]) for match in answers)),
        sender,
        location=location,
        recipient=f"agent:{recipient}",
        failed=frozenset(match[1] for match in answers if is_error(match[2])),
    )
