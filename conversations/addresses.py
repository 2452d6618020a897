"""Conversation ids in URLs: verbatim where safe, else `~` and base64url of the UTF-8 (design 3.6). No Django."""

import base64
import binascii
import re

_VERBATIM = re.compile(r"[A-Za-z0-9_.-]{1,200}")


def to_url(key: str) -> str:
    """Write a conversation's id as one path segment."""
    if _VERBATIM.fullmatch(key) and key not in (".", ".."):
        return key
    return "~" + base64.urlsafe_b64encode(key.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def from_url(segment: str) -> str:
    """Read it back. Raises ValueError for a segment that `to_url` cannot have written."""
    if not segment.startswith("~"):
        if not _VERBATIM.fullmatch(segment) or segment in (".", ".."):
            raise ValueError(f"no conversation id: {segment!r}")
        return segment
    try:
        key = base64.urlsafe_b64decode(segment[1:] + "=" * (-len(segment[1:]) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError(f"no conversation id: {segment!r}") from None
    if to_url(key) != segment:
        raise ValueError(f"no conversation id: {segment!r}")
    return key


class ConversationId:
    """Django's path converter `cid`."""

    regex = r"~?[A-Za-z0-9_.\-]+"
    to_python = staticmethod(from_url)
    to_url = staticmethod(to_url)


def row_number(text: str) -> int:
    """Read a row's number; what is none is 0, which no row has."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


class RowNumber:
    """Django's path converter `number`. Whoever may look is told that there is no such row, nobody else."""

    regex = "[^/]+"
    to_python = staticmethod(row_number)

    def to_url(self, value: int) -> str:
        """Write it."""
        return str(value)
