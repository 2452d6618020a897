"""Text for one plain line: without Markdown, cut between words. No Django."""

import re

TITLE = 80  # characters of a conversation's title
LOOKED_AT = 400  # characters in which a title's words are looked for

_HEADING = re.compile(r"(?:(?<=\s)|^)(?:#{1,6}|>) (?=\S)")
_LINK = re.compile(r"!?\[([^\[\]]{1,200})\]\([^()\s]{0,400}\)")
_FENCE = re.compile(r"(?:(?<=\s)|^)`{3,}[\w+-]{0,20}(?:\s|$)")  # a block of code begins or ends
_STRONG = re.compile(r"(\*\*|__|~~|`{1,3})(?=\S)([^*_~`]{1,400})(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])(\*|_)(?=\S)([^*_]{1,400})(?<=\S)\1(?![\w*])")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, whose plural ends with s: 1 event, 2,000 events."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def without_markers(line: str) -> str:
    """Remove Markdown from a line that is shown as plain text: `**Now**: see [here](x)` → `Now: see here`. Joined lines
    keep their list markers."""
    line = _FENCE.sub("", _HEADING.sub("", _LINK.sub(r"\1", line)))
    return _EMPHASIS.sub(r"\2", _STRONG.sub(r"\2", line))


def short_title(text: str) -> str:
    """Return the first words of a text as a title: one line of at most `TITLE` characters, cut between two words."""
    line = without_markers(" ".join(text[:LOOKED_AT].split()))
    if len(line) <= TITLE:
        return line
    beginning = line[:TITLE]
    words = beginning.rsplit(" ", 1)[0] if " " in beginning else beginning[: TITLE - 1]
    return f"{words.rstrip(' .,:;')}…"
