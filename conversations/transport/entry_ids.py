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


def moment(entry_id: str) -> datetime | None:
    """Return when the entry was added; None for the start, and for an id that is not a time."""
    try:
        milliseconds, _ = order(entry_id)
        return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
    except (ValueError, OverflowError, OSError):
        return None


def when(entry_id: str | None) -> str | None:
    """Return `moment`, ISO 8601."""
    added = moment(entry_id or START)
    return added.isoformat(timespec="milliseconds") if added else None
