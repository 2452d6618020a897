"""A call that waits, as a question in words: its tool's name and its short arguments, nothing else. For lists."""

import re

from conversations.core import hidden_characters, secret_masking

MAX_ARGUMENTS = 3  # arguments that are shown
LENGTH = 40  # characters of a value that is shown; a longer one is left to the card
NAME = 60  # characters of a name
_MARKS = re.compile(r"[,:;?]")  # with which a value could pass for further arguments
_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.\s]+")


def question_of(name: str, arguments: object) -> str:
    """Return for `file_incident` "File incident: location Mill Road 5, severity 3?", safe in text and attributes;
    empty without a name. Texts and numbers are shown, in the order in which they were sent; a secret is not."""
    verb = _words(name)
    if not verb:
        return ""
    sent = arguments if isinstance(arguments, dict) else {}
    details = [f"{_words(field)} {text}" for field, value in sent.items() if (text := _text(field, value))]
    named = f": {', '.join(details[:MAX_ARGUMENTS])}" if details else ""
    return hidden_characters.spelled_out(f"{verb[:1].upper()}{verb[1:]}{named}?")


def _words(name: str) -> str:
    return " ".join(filter(None, _BORDER.split(name[:NAME]))).lower() if name.isascii() else name[:NAME].strip()


def _text(field: str, value: object) -> str:
    """Return a value that is short enough to be shown; empty for others."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    text = " ".join(str(value).split())
    is_secret = secret_masking.names_secret(field) or secret_masking.has_secret(text)
    if is_secret or len(text) > LENGTH or "“" in text or "”" in text:
        return ""
    return f"“{text}”" if _MARKS.search(text) else text
