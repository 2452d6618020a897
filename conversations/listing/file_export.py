"""Write a filtered list as a file, CSV or JSON lines, page by page, so that memory stays bounded.

In CSV, a cell that a spreadsheet would read as a formula gets an apostrophe in front, and invisible characters are
spelled out; JSON lines are as the API returns them. So does what begins after a semicolon or a line break in a cell:
where the semicolon separates cells, a spreadsheet begins a cell there.
"""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar

from conversations.core import hidden_characters
from conversations.core.json_values import as_text

Form = Literal["csv", "jsonl"]
TYPES: dict[str, str] = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
FORMULAS = tuple("=+-@\t\r\n＝＋－＠")  # the full-width ones too: some programs fold them
_INNER_FORMULA = re.compile(r'([;\r\n])(?=[\s"]*[=+\-@＝＋－＠])')

Position = TypeVar("Position")


async def stream_pages(
    check: Callable[[], None], head: bytes, page: Callable[[Position | None], tuple[bytes, Position | None]]
) -> AsyncIterator[bytes]:
    """Return the file in pieces; each page is read in a thread when the reader has taken the one before.

    `page` returns the lines after a position, and the position after them, None at the end. Stops with `NotAllowed` as
    soon as `check` raises it, because a permission was revoked.
    """
    yield head
    position: Position | None = None
    while True:
        piece, position = await asyncio.to_thread(_checked, check, page, position)
        if piece:
            yield piece
        if position is None:
            return


def _checked(
    check: Callable[[], None],
    page: Callable[[Position | None], tuple[bytes, Position | None]],
    position: Position | None,
) -> tuple[bytes, Position | None]:
    check()  # as it stands now: long files take long
    return page(position)


def head(form: Form, columns: Sequence[str]) -> bytes:
    """Return what comes before the first line: the column names in CSV, nothing in JSON lines."""
    return table([columns]) if form == "csv" else b""


def lines(items: Iterable[Mapping[str, Any]], form: Form, columns: Sequence[str]) -> bytes:
    """Write items, one per line."""
    if form == "jsonl":
        return "".join(f"{json.dumps(item, ensure_ascii=False)}\n" for item in items).encode("utf-8", "replace")
    return table([[cell(item[column]) for column in columns] for item in items])


def cell(value: Any) -> str:
    """Write a value for a spreadsheet: no formula, no invisible character."""
    if value is None:
        return ""
    if not isinstance(value, str) and isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.15g}" if isinstance(value, float) else str(value)
    text = as_text(value)
    if text.isascii() and text.isprintable():
        if text[:1].isalnum() and ";" not in text:  # most: neither a formula nor anything hidden
            return text
    else:
        text = hidden_characters.spelled_out(text.replace("\t", "    "))
    text = _INNER_FORMULA.sub(r"\1'", text)
    return f"'{text}" if text.lstrip().startswith(FORMULAS) or text.startswith(FORMULAS) else text


def table(rows: Iterable[Iterable[str]]) -> bytes:
    """Write rows of cells as CSV."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerows(rows)
    return written.getvalue().encode("utf-8", "replace")
