"""Redis entry ids, `milliseconds-sequence`: text on the wire, two integers to compare."""

from datetime import UTC, datetime

START = "0-0"
_LAST = (1 << 64) - 1


def order(entry_id: str) -> tuple[int, int]:
    """Return the key by which entry ids are compared."""
    milliseconds, _, sequence = entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)


def before(entry_id: str) -> str:
    """Return the id right before; before the first one it is the start."""
    milliseconds, sequence = order(entry_id)
    if sequence:
        return f"{milliseconds}-{sequence - 1}"
    return f"{milliseconds - 1}-{_LAST}" if milliseconds else START


def at(entry_id: str) -> int:
    """Return when the entry was added by Redis's clock, µs UTC."""
    return order(entry_id)[0] * 1000


def when(entry_id: str | None) -> str | None:
    """Return when the entry was added, ISO 8601; None for the start, and for an id that is not a time."""
    if entry_id is None or entry_id == START:
        return None
    try:
        return datetime.fromtimestamp(order(entry_id)[0] / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
