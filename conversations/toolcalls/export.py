"""All calls that match, newest first, as CSV or as lines of JSON: page after page, so that memory stays bounded.

What a spreadsheet would take for a formula gets an apostrophe before it, and what nobody can see is spelled out, both
in CSV alone; a line of JSON is what the API answers.
"""

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any, Literal

from conversations import rights
from conversations.fragments import hidden
from conversations.principals import Principal
from conversations.toolcalls import listing
from conversations.toolcalls.conditions import Place
from conversations.toolcalls.filters import Filters
from conversations.toolcalls.rows import Row, item, rows, within

Form = Literal["csv", "jsonl"]
TYPES: dict[str, str] = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson"}
BATCH = 20  # calls read at a time: a body may have a megabyte
COLUMNS = (
    *("id", "started_at", "status", "agent", "name", "qualified_name", "origin", "mcp_server", "arguments", "output"),
    *("error", "duration_ms", "output_bytes", "approver", "replay_of", "conversation_id", "called_seq", "run_id"),
    *("call_id", "url"),
)
FORMULAS = tuple("=+-@\t\r\n＝＋－＠")  # the full-width ones too: some programs fold them


async def export(filters: Filters, form: Form, by: Principal) -> AsyncIterator[bytes]:
    """Answer the file in pieces; each page is read in a thread when the reader has taken the one before.

    Raises `NotAllowed` where it has come to when the right is taken away meanwhile.
    """
    yield head(form)
    place: Place | None = None
    while True:
        piece, place = await asyncio.to_thread(partial(_allowed, by, filters, form, place))
        if piece:
            yield piece
        if place is None:
            return


def head(form: Form) -> bytes:
    """Answer what stands before the calls."""
    return _csv([COLUMNS]) if form == "csv" else b""


def _allowed(by: Principal, filters: Filters, form: Form, place: Place | None) -> tuple[bytes, Place | None]:
    rights.require(by, "export")  # as it stands now: long files take long
    return page(filters, form, place)


def page(filters: Filters, form: Form, place: Place | None) -> tuple[bytes, Place | None]:
    """Answer the calls behind a place, and where to go on; None at the end."""
    found = within(listing.newest(filters, before=place, limit=BATCH))
    return lines(rows(found.calls, whole=True), form), found.after


def lines(some: Iterable[Row], form: Form) -> bytes:
    """Write calls, one a line."""
    items = [item(row) for row in some]
    if form == "jsonl":
        return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in items).encode("utf-8", "replace")
    return _csv([[cell(one[column]) for column in COLUMNS] for one in items])


def cell(value: Any) -> str:
    """Write a value for a spreadsheet: no formula, nothing that the eye cannot see."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:.15g}" if isinstance(value, float) else str(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = hidden.spell(text.replace("\t", "    "))
    return f"'{text}" if text.lstrip().startswith(FORMULAS) or text.startswith(FORMULAS) else text


def _csv(table: Iterable[Iterable[str]]) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerows(table)
    return written.getvalue().encode("utf-8", "replace")
