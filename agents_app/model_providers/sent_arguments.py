"""The arguments of a model's calls, and other text to and from it, as the SDK, the record and a model's server can
hold them. Used by `fit_calls`.

The SDK encodes the parsed arguments as UTF-8, and parses them without a limit on depth: half of a surrogate pair, and
a list inside a list a thousand times, would end the run in place of the call.
"""

import re
from typing import Any, Final

from conversations.core.errors import TooLarge
from conversations.events.payload import MAX_DEPTH, check_depth

_ESCAPE: Final = re.compile(  # a pair, half of one, or any other escape: a backslash that is escaped begins none
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL
)
_HALF: Final = re.compile("[\ud800-\udfff]")
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[{\]}]', re.DOTALL)


def harmless(sent: str) -> str:
    """Return arguments with U+FFFD for half of a surrogate pair; nested deeper than an event may be, only what comes
    before that, which is no JSON: the call fails, and the model is told."""
    text: str = encodable(sent)
    if "\\u" in text:
        text = _ESCAPE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)
    try:
        check_depth(text.encode())
    except TooLarge:
        return f"{text[: _end_of_depth(text)]}…"
    return text


def encodable(value: Any) -> Any:
    """Return a text, or JSON, with U+FFFD for half of a surrogate pair, which is no UTF-8: the name of a file may have
    one."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [encodable(item) for item in value]
    if isinstance(value, dict):
        return {encodable(name): encodable(item) for name, item in value.items()}
    return value


def _end_of_depth(text: str) -> int:
    """Return where a text is nested too deeply first; its length if it is nowhere."""
    depth = 0
    for match in _TOKEN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        if depth > MAX_DEPTH:
            return match.start()
    return len(text)
