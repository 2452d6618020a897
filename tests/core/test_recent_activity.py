"""The counts of the last hour: whatever comes when, they are those of the events themselves."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from conversations.core.recent_activity import KEPT, SPAN_US, moved_on, recent, spans_between

BEGAN = 10_000 * SPAN_US


def counted(moments: list[int]) -> str:
    """Count events one by one, as the fold does."""
    text, last = "", 0
    for at in moments:
        text = moved_on(moved_on(text, 0, spans_between(last, at)), 1, 0)
        last = at
    return text


@given(st.lists(st.integers(0, 90 * 60 * 1_000_000), min_size=1, max_size=60), st.integers(0, 2 * KEPT))
def test_each_span_has_as_many_events_as_happened_in_it(offsets: list[int], later: int) -> None:
    moments = [BEGAN + offset for offset in sorted(offsets)]
    now = moments[-1] + later * SPAN_US

    spans = Counter(at // SPAN_US for at in moments)
    newest = now // SPAN_US

    assert recent(counted(moments), moments[-1], now) == [spans[n] for n in range(newest - KEPT + 1, newest + 1)]


def test_a_clock_that_goes_back_loses_nothing() -> None:
    text = counted([BEGAN, BEGAN - 5 * SPAN_US, BEGAN - 5 * SPAN_US])

    assert text == "3"


def test_the_counts_fit_their_column() -> None:
    text = ""
    for _ in range(KEPT):
        text = moved_on(moved_on(text, 0, 1), 2**31, 0)

    assert len(text) <= 240
    assert sum(map(int, text.split(","))) == KEPT * 2**31
