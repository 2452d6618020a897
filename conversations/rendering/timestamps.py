"""The times shown in a row: the commit time, and the sender's own if it differs (§3.6)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from conversations.core import principals
from conversations.core.micros import read_micros
from conversations.events import original_times

DAY_S = 24 * 3600
DIFFERS_US = 5_000_000  # a sender's time closer than this to the commit is not worth a word

Body = Mapping[str, Any]  # a decoded payload: any JSON


class When(NamedTuple):
    """One moment: for `datetime`, for reading, and in full."""

    iso: str
    clock: str
    title: str


class RowTimes(NamedTuple):
    """The time in the row's last column, and the sender's own if it is shown beside the name."""

    shown: When
    sent: When | None


def of_event(at: int, principal: str, body: Body) -> RowTimes:
    """Return the times of an event. An imported one shows when it first happened, with the import in its title."""
    created = read_micros(body.get("created_at"))
    if principals.is_imported(principal):
        if (shown := original_times.of_imported(body)) is not None:
            return RowTimes(_when(shown, also=f"stored {_when(at).title}"), None)
    elif created is not None and abs(created - at) > DIFFERS_US:
        stated = _when(created)
        other_day = stated.iso[:10] != _when(at).iso[:10]
        return RowTimes(_when(at), stated._replace(clock=f"{stated.iso[:10]} {stated.clock}") if other_day else stated)
    return RowTimes(_when(at), None)


def moment(value: object) -> When | None:
    """Parse a moment from a body; None if it is not one."""
    at = read_micros(value)
    return None if at is None else _when(at)


def duration(ms: float | None) -> str:
    """Return a duration as text: 412 ms, 3.1 s, 4 min 05 s; empty if unknown (a recording without times has 0)."""
    if not ms:
        return ""
    if ms < 1:
        return "< 1 ms"
    if round(ms) < 1000:
        return f"{ms:.0f} ms"
    if round(ms / 1000, 1) < 60:
        return f"{ms / 1000:.1f} s"
    if (seconds := round(ms / 1000)) < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{ms / 3_600_000:,.1f} h"


def elapsed(ms: float) -> str:
    """Return a duration that goes on, in steps of 10 s, as static/js/clock.js does: 40 s, 4 min 10 s, 1.2 h."""
    ms = ms // 10_000 * 10_000
    return f"{ms / 1000:.0f} s" if ms < 60_000 else duration(ms)


def age(then: datetime, now: datetime | None = None, *, in_text: bool = False, after_state: bool = False) -> str:
    """Return how long ago it was, as static/js/clock.js does: "now", "40 s", "6 min", "2 h", then the day; for a future
    time "in 6 min". `in_text` as a sentence needs it, "6 min ago"; `after_state`: "just now". The day is in UTC, until
    the page draws it in the reader's zone."""
    now = now or datetime.now(UTC)
    if in_text:
        text = age(then, now)
        return f"{text} ago" if 10 <= (now - then).total_seconds() < DAY_S else text
    seconds = (now - then).total_seconds()
    if seconds <= -10:
        return f"in {age(now, then)}" if seconds > -DAY_S else f"{_day(then, now)} {then:%H:%M:%S}"
    if seconds < 10:
        return "just now" if after_state else "now"
    if seconds < 60:
        return f"{int(seconds // 10) * 10} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min"
    return f"{int(seconds // 3600)} h" if seconds < DAY_S else _day(then, now)


def _day(then: datetime, now: datetime) -> str:
    return f"{then.day} {then:%b}" if then.year == now.year else f"{then.day} {then:%b %Y}"


def _when(at: int, also: str = "") -> When:
    seconds, micro = divmod(at, 1_000_000)
    iso, title = _second(seconds)
    title = f"{title}.{micro // 1000:03d} UTC"
    return When(f"{iso}.{micro:06d}Z", iso[11:], f"{title}; {also}" if also else title)


@lru_cache(maxsize=1024)
def _second(at: int) -> tuple[str, str]:
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S"), f"{moment.day} {moment:%b %Y, %H:%M:%S}"
