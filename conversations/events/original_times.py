"""When an imported event first happened: the commit time of its row is that of the import."""

from collections.abc import Mapping
from typing import Any

from conversations.core.micros import read_micros


def of_imported(body: Mapping[str, Any]) -> int | None:
    """Return when an imported event first happened, µs UTC: as its record says, else its sender; None if neither."""
    imported = body.get("imported")
    first = read_micros(imported.get("at")) if isinstance(imported, dict) else None
    return first if first is not None else read_micros(body.get("created_at"))
