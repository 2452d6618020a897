"""Ids and numbers in URLs (§3.6). An id is percent-encoded if people can read it, else `~` and base64url of its UTF-8;
both are accepted. No Django."""

import base64
import binascii
import re
from typing import Any
from urllib.parse import quote, unquote

from conversations.core.errors import Invalid
from switchboard import topics

MAX_KEY = topics.MAX_SUFFIX  # characters
_VERBATIM = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_KEY}}}")
_SAFE = "!$&'()*+,;=:@~"  # what a path segment holds as it is (RFC 3986, 3.3)
MAX_SEGMENT = 300  # characters of a segment that is still read


def to_url(key: str) -> str:
    """Return an id as one path segment."""
    return quote(segment_of(key), safe=_SAFE)


def segment_of(key: str) -> str:
    """Return the path segment of an id before percent-encoding: the id itself, or `~` and base64url if a proxy could
    change it (slashes), if it is unreadable, or very long."""
    return key if _is_readable(key) else _encoded(key)


def from_url(segment: str) -> str:
    """Parse a percent-decoded path segment. Raises ValueError if it is not an id."""
    if segment.startswith("~") and (key := _decoded(segment)) is not None:
        return key
    if not 1 <= len(segment) <= MAX_KEY or segment in (".", ".."):
        raise ValueError(f"not an id: {segment[:80]!r}")
    return segment


def with_slashes(scope: dict[str, Any]) -> dict[str, Any]:
    """Return an ASGI scope whose path keeps an encoded slash (`C1%2F5`) inside its segment, written in the `~` form.
    Servers decode a path before anyone can tell the two kinds of slashes apart."""
    raw: bytes = scope.get("raw_path") or b""
    if b"%2f" not in raw.lower():
        return scope
    segments = [unquote(part) for part in raw.partition(b"?")[0].decode("ascii", "replace").split("/")]
    return scope | {"path": "/".join(_encoded(part) if "/" in part else part for part in segments)}


def _is_readable(key: str) -> bool:
    if _VERBATIM.fullmatch(key):
        return key not in (".", "..")
    is_plain = key.isprintable() and key == key.strip() and not (key.startswith("~") or set(key) & set("/\\%"))
    return is_plain and 1 <= len(key) <= MAX_KEY and len(quote(key, safe=_SAFE)) <= MAX_SEGMENT


def _encoded(key: str) -> str:
    return "~" + base64.urlsafe_b64encode(key.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _decoded(segment: str) -> str | None:
    """Return the id of a `~` form; None for a form that is never written, since that id is written verbatim."""
    try:
        key = base64.urlsafe_b64decode(segment[1:] + "=" * (-len(segment[1:]) % 4)).decode()
    except (binascii.Error, ValueError):
        return None
    is_ours = _encoded(key) == segment and not (_VERBATIM.fullmatch(key) and key not in (".", ".."))
    return key if is_ours and len(key) <= MAX_KEY else None


class ConversationId:
    """Django's path converter `cid`. Django percent-encodes what `to_url` returns."""

    regex = "[^/]+"
    to_python = staticmethod(from_url)
    to_url = staticmethod(segment_of)


def row_number(text: str) -> int:
    """Parse a row's number; anything else is 0, which no row has."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def whole_number(text: str, field: str, least: int, most: int) -> int:
    """Parse a number of a query. Raises Invalid that says which numbers are allowed."""
    if not (text.isascii() and text.isdigit()) or len(text) > 18 or not least <= int(text) <= most:
        raise Invalid(f"must be a whole number from {least:,} to {most:,}; got {text[:20]!r}", field=field)
    return int(text)


class RowNumber:
    """Django's path converter `number`. A number beyond any row is accepted here, so that only permitted readers learn
    that it does not exist."""

    regex = "[^/]+"
    to_python = staticmethod(row_number)

    def to_url(self, value: int) -> str:
        """Write it."""
        return str(value)
