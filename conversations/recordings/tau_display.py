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

from conversations.recordings.calls import Calls, Open
from conversations.recordings.openai_chat import is_error
from conversations.recordings.recording import Moment, Recording, Step, caption, said
from conversations.recordings.source import Source
from conversations.recordings.trouble import Trouble

NAME = "tau-bench display lines"
FIELD = "messages_display"

_START = re.compile(r"^(user|assistant|tool): ?", re.MULTILINE)


def fits(sample: object) -> bool:
    """Tell whether a line is of this format."""
    return isinstance(sample, dict) and isinstance(sample.get(FIELD), str)


def read(source: Source, trouble: Trouble) -> Iterator[Recording]:
    """Read one recording for each line."""
    for place, value in trouble.objects(source):
        text = value.get(FIELD)
        if not isinstance(text, str):
            trouble.found(place, f"expected an object with {FIELD}")
            continue
        said_parts = _parts(text)
        title = next((words for role, words in said_parts if role == "user"), "")
        number = place.removeprefix("line ")
        yield Recording(f"{source.stem}-{number}", caption(title), _steps(text, place, trouble))


def _steps(text: str, place: str, trouble: Trouble) -> Iterator[Step]:
    if not _START.match(text):
        trouble.found(f"{place}, {FIELD}", "expected it to begin with user:, assistant: or tool:")
    calls = Calls()
    for number, (role, words) in enumerate(_parts(text)):
        where = f"{place}, part {number + 1}"
        if role == "tool":
            yield calls.start(Open(None, "tool", "agent:assistant", None), {}, moment=Moment(), place=where)
            yield calls.finish(None, words, failed=is_error(words), moment=Moment(), place=where)
        elif role == "user":
            yield said("user", "agent:assistant", words, moment=Moment(), place=where)
        elif words != "None":
            yield said("agent:assistant", "user", words, moment=Moment(), place=where)


def _parts(text: str) -> list[tuple[str, str]]:
    """Cut the text where a role begins a line."""
    pieces = _START.split(text)[1:]
    return [(role, words.removesuffix("\n")) for role, words in zip(pieces[::2], pieces[1::2], strict=True)]
