"""Untrusted bytes as text if they are UTF-8, else as a hex dump; never rendered."""

import codecs
from typing import NamedTuple

from markupsafe import Markup

from conversations.core import hidden_characters
from conversations.core.html_escape import escape, safe
from conversations.rendering import json_tree

ROW = 16  # bytes of one line
FIRST = 1024  # bytes of a dump shown at once; the rest is behind "show all"


class HexDump(NamedTuple):
    """The drawn bytes, and whether they are text."""

    html: Markup
    is_text: bool


def draw(raw: bytes, *, is_whole: bool = True) -> HexDump:
    """Draw bytes. If the end was cut off (`is_whole` false), an incomplete last character is left out."""
    text = text_of(raw, is_whole=is_whole)
    return HexDump(dump(raw), is_text=False) if text is None else HexDump(json_tree.draw_verbatim(text), is_text=True)


def text_of(raw: bytes, *, is_whole: bool = True) -> str | None:
    """Decode bytes as UTF-8; None if they are not."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(raw, final=is_whole)
    except UnicodeDecodeError:
        return None


def line(raw: bytes) -> str:
    """Return the beginning of the bytes as one line for a list: hidden characters spelled out, invalid UTF-8 as
    U+FFFD."""
    return hidden_characters.spelled_out(" ".join(raw.decode("utf-8", "replace").split()))


def dump(raw: bytes) -> Markup:
    """Draw a hex dump: offset, 16 bytes, and their printable ASCII characters."""
    rest = raw[FIRST:]
    label = f"Show all {len(raw):,} bytes"
    more = ""
    if rest:
        summary = f'<summary aria-label="{label}" data-label="{label}"></summary>'
        more = f'<details class="rest">{summary}{_rows(rest, FIRST)}</details>'
    return safe(f'<div class="output hex" data-source dir="ltr">{_rows(raw[:FIRST], 0)}{more}</div>')


def _rows(raw: bytes, start: int) -> str:
    return "".join(_row(raw[at : at + ROW], start + at) for at in range(0, len(raw), ROW))


def _row(chunk: bytes, at: int) -> str:
    digits = f"{chunk[:8].hex(' ')}  {chunk[8:].hex(' ')}"
    seen = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in chunk)
    return escape(f"{at:08x}  {digits:<{ROW * 3}}  {seen}\n")
