"""How many events a conversation had recently: counts in the text of one column, newest first. No Django.

The newest span is the one of the conversation's last event, so the text suffices: "3,0,12" is 3 events in the span of
the last event, none in the one before, 12 in the one before that.
"""

SPAN_US = 180_000_000  # three minutes
KEPT = 20  # spans: an hour


def moved_on(counts: str, fresh: int, spans: int) -> str:
    """Return the counts after `spans` more spans, with `fresh` events added in the newest."""
    if fresh:
        newest, _, rest = counts.partition(",")
        counts = f"{int(newest or 0) + fresh},{rest}" if rest else str(int(newest or 0) + fresh)
    if spans <= 0:
        return counts
    if spans >= KEPT:
        return ""
    return ",".join(["0"] * spans + counts.split(",")[: KEPT - spans]) if counts else ""


def spans_between(earlier: int, later: int) -> int:
    """Return how many spans lie between two moments (µs UTC)."""
    return later // SPAN_US - earlier // SPAN_US


def recent(counts: str, last_at: int, now: int) -> list[int]:
    """Return the number of events in each span of the last hour, oldest first; `last_at` and `now` are µs UTC."""
    text = moved_on(counts, 0, max(0, spans_between(last_at, now)))
    known = [int(count) for count in text.split(",")] if text else []
    return [*[0] * (KEPT - len(known)), *reversed(known)]
