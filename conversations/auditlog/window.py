"""Between which entries a time range lies. Entries are numbered as they are written, so their times rise with their
numbers, but for clocks that differ: a few of them, evenly spread, say where to look.

Where to look is widened by an hour on both sides; every entry there is held against its own time. So what was written
by a clock that was wrong by more than that, in a log of more than `SMALL` entries, may be left out.
"""

from collections.abc import Callable, Sequence

from conversations.models import AuditEntry

SMALL = 5_000  # entries that are looked at as they are
SAMPLES = 100  # entries read in one round; each leaves a hundredth
SLACK_US = 3_600_000_000


def floor(head: int, since: int) -> int:
    """Answer a seq: this one and all below were written before `since` (µs)."""
    low, high = 0, head + 1
    while high - low > SMALL // SAMPLES and head > SMALL:
        early = _leading(_samples(low, high), lambda at: at < since - SLACK_US)
        if early is None:
            break
        low, high = early[0] or low, early[1] or high
    return low


def ceiling(head: int, until: int) -> int:
    """Answer a seq: this one and all above were written after `until` (µs)."""
    low, high = 0, head + 1
    while high - low > SMALL // SAMPLES and head > SMALL:
        late = _leading(_samples(low, high)[::-1], lambda at: at > until + SLACK_US)
        if late is None:
            break
        high, low = late[0] or high, late[1] or low
    return high


def _leading(samples: Sequence[tuple[int, int]], is_outside: Callable[[int], bool]) -> tuple[int, int] | None:
    """Answer the last of the samples that are outside before the first that is not, and that one; 0 for none."""
    if not samples:
        return None
    last = 0
    for seq, at in samples:
        if not is_outside(at):
            return last, seq
        last = seq
    return last, 0


def _samples(low: int, high: int) -> list[tuple[int, int]]:
    """Read the times of entries evenly spread between two, without these."""
    step = max(1, (high - low) // SAMPLES)
    found = AuditEntry.objects.filter(seq__in=range(low + step, high, step))
    return list(found.order_by("seq").values_list("seq", "at"))
