"""Up to where the collector has everything: a row of `meta`, moved after the collector's answer and by one process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from conversations.core.write_transaction import write_transaction
from conversations.models import Meta
from conversations.telemetry_export import ended_runs

NAME = "telemetry_export"


@dataclass(frozen=True, slots=True)
class Cursor:
    """`row`: every run that ended up to here was accepted, or rejected for good. `trouble`: why nothing is sent now."""

    row: int
    runs: int = 0
    spans: int = 0
    refused: int = 0  # spans
    refusal: str = ""  # the last one's words
    trouble: str = ""

    def to(self, **changes: object) -> Cursor:
        """Return the cursor with changes."""
        return replace(self, **changes)  # type: ignore[arg-type]  # fields of this class


def read() -> Cursor | None:
    """Return the cursor; None if nothing was ever exported."""
    value = Meta.objects.filter(name=NAME).values_list("value", flat=True).first()
    return Cursor(**json.loads(value)) if value else None


def begin() -> Cursor:
    """Return the cursor. The first export starts with what happens from now on."""
    if (cursor := read()) is not None:
        return cursor
    with write_transaction():
        fresh = Cursor(ended_runs.newest_row())
        row, _ = Meta.objects.get_or_create(name=NAME, defaults={"value": _text(fresh)})
    return Cursor(**json.loads(row.value))


def move(was: Cursor, to: Cursor) -> bool:
    """Move the cursor; return False if another process has moved it meanwhile."""
    with write_transaction():
        return Meta.objects.filter(name=NAME, value=_text(was)).update(value=_text(to)) == 1


def _text(cursor: Cursor) -> str:
    return json.dumps(asdict(cursor))
