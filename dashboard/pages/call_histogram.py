"""The figure above the list of tool calls: bars of calls over time, the failed ones striped, and how many there are."""

from dataclasses import dataclass
from datetime import datetime

from conversations.core.micros import to_datetime
from conversations.tool_calls.listing.activity import COUNTED, CallActivity

WIDTH, HEIGHT = 960, 44
GAP = 0.12  # of a bar's place
LOW, LOW_FAILED = 2, 5  # the lowest bar, and that of failed calls: as high as a stripe is seen
STRIPE = 4  # between two stripes of a bar of failed calls: they are distinguished without colour


@dataclass(frozen=True, slots=True)
class CallHistogram:
    """A drawing on `WIDTH` by `HEIGHT`: SVG paths of the failed calls, of the stripes on them, of the others above, and
    of the time that was not counted."""

    failed: str
    stripes: str
    others: str
    uncounted: int  # places from the left
    begin: datetime
    end: datetime
    total: str
    everything: str
    failures: str
    counted_from: datetime | None

    @property
    def words(self) -> str:
        """The figure in a sentence."""
        ends = " and ".join(f"{at:%Y-%m-%d %H:%M:%S}" for at in (self.begin, self.end))
        return f"Calls recorded between {ends} UTC: {self.total}, of which {self.failures} failed"


def histogram(activity: CallActivity) -> CallHistogram:
    """Draw what was counted."""
    top, total, plus = max(activity.calls), sum(activity.calls), "+" if activity.counted_from else ""
    place = WIDTH / len(activity.calls)
    failed, stripes, others = [], [], []
    for number, (count, bad) in enumerate(zip(activity.calls, activity.failed, strict=True)):
        x, width = round(place * (number + GAP / 2), 1), round(place * (1 - GAP), 1)
        low = _height(bad, top, LOW_FAILED)
        high = max(_height(count, top, LOW), low + LOW if count > bad else 0)
        if bad:
            failed.append(_bar(x, width, 0, low))
            stripes += [f"M{x} {HEIGHT - y}h{width}" for y in range(STRIPE // 2, low, STRIPE)]
        if count > bad:
            others.append(_bar(x, width, low, high))
    return CallHistogram(
        failed="".join(failed),
        stripes="".join(stripes),
        others="".join(others),
        uncounted=_uncounted(activity),
        begin=to_datetime(activity.start),
        end=to_datetime(activity.end),
        total=f"{total:,}{plus}",
        everything=_everything(activity.everything),
        failures=f"{sum(activity.failed):,}{plus}",
        counted_from=to_datetime(activity.counted_from) if activity.counted_from else None,
    )


def _height(number: int, top: int, least: int) -> int:
    return max(least, round(number / top * HEIGHT)) if number else 0


def _bar(x: float, width: float, low: int, high: int) -> str:
    return f"M{x} {HEIGHT - low}h{width}V{HEIGHT - high}h-{width}z"


def _uncounted(activity: CallActivity) -> int:
    """Return how far from the left the time reaches of which nothing was counted."""
    if activity.counted_from is None:
        return 0
    return round((activity.counted_from - activity.start) / (activity.end - activity.start) * WIDTH)


def _everything(number: int | None) -> str:
    """Say how many calls there are without filters; nothing where none are filtered."""
    if number is None:
        return ""
    return f"{COUNTED:,}+" if number > COUNTED else f"{number:,}"
