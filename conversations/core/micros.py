"""Times of the record, µs since 1970 UTC, to datetimes and back, exactly. No Django."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DAY = 86_400_000_000  # µs
YEAR_10000 = 253_402_300_800_000_000  # the first µs that no datetime can hold


def to_datetime(at: int) -> datetime:
    """Return µs UTC as a datetime. Raises OverflowError outside the years 1 to 9999."""
    return EPOCH + at * MICROSECOND


def nearest_datetime(at: int) -> datetime:
    """Return µs UTC as a datetime, clamped to the years 1970 to 9999."""
    return to_datetime(min(max(at, 0), YEAR_10000 - 1_000_000))


def to_micros(at: datetime) -> int:
    """Return a datetime as µs UTC; without a zone it is UTC."""
    return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - EPOCH) // MICROSECOND


def read_micros(value: object) -> int | None:
    """Parse µs UTC or ISO 8601 (without a zone: UTC); None for anything else, or outside the years 1970 to 9999."""
    if isinstance(value, str):
        try:
            value = to_micros(datetime.fromisoformat(value))
        except (ValueError, OverflowError):
            return None
    if type(value) is not int:
        return None
    return value if 0 <= value < YEAR_10000 else None
