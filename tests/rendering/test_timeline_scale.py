"""The axis of a timeline: round times where work is drawn, the ends of what is folded."""

from itertools import pairwise

import pytest

from conversations.rendering.timeline_scale import LAST_TICK, TICK_GAP, scale_of, tick_words

S = 1_000_000  # µs


def words(*busy: tuple[float, float], last: float) -> list[str]:
    scale = scale_of([(round(a * S), round(b * S)) for a, b in busy], 0, round(last * S))
    ticks = scale.ticks()
    places = [share for share, _ in ticks]
    assert places == sorted(places)
    assert all(0 <= share <= LAST_TICK for share in places)
    assert all(later - place >= TICK_GAP - 1e-9 for place, later in pairwise(places))
    return [word for _, word in ticks]


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        (1.7, ["0 s", "500 ms", "1.0 s", "1.5 s"]),
        (8, ["0 s", "1 s", "2 s", "3 s", "4 s", "5 s", "6 s", "7 s"]),
        (95, ["0 s", "15 s", "30 s", "45 s", "1 min", "1 min 15 s"]),
        (7 * 3600, ["0 s", "1 h", "2 h", "3 h", "4 h", "5 h", "6 h"]),
        (0.004, ["0 s", "1 ms", "2 ms", "3 ms"]),
    ],
)
def test_work_is_marked_at_round_times(seconds: float, wanted: list[str]) -> None:
    assert words((0, seconds), last=seconds) == wanted


def test_after_a_fold_the_axis_says_what_time_it_is() -> None:
    ticks = words((0, 10), (610, 640), last=640)

    assert ticks[:2] == ["0 s", "10 s"]
    assert "10 min 10 s" in ticks
    assert words((0, 0), (0.41, 1), last=1)[:2] == ["0 s", "410 ms"]


def test_seconds_after_a_long_pause_are_counted_from_its_end() -> None:
    ticks = words((0, 1), (3_725, 3_728), last=3_728)

    assert ticks == ["0 s", "1 s", "1 h 2 min", "+1 s", "+2 s"]


def test_messages_alone_are_marked_where_pauses_end() -> None:
    ticks = words(*((hour * 3600, hour * 3600) for hour in range(6)), last=5 * 3600)

    assert set(ticks) <= {"0 s", *(f"{hour} h" for hour in range(6))}
    assert len(ticks) >= 3


def test_nothing_has_no_marks() -> None:
    assert scale_of([], 0, 0).ticks() == []


@pytest.mark.parametrize(
    ("ms", "step", "wanted"),
    [
        *((0, 1, "0 s"), (0, 60_000, "0 s"), (250, 50, "250 ms"), (1_250, 50, "1.25 s"), (1_500, 500, "1.5 s")),
        *(
            (59_000, 1_000, "59 s"),
            (60_000, 15_000, "1 min"),
            (75_000, 15_000, "1 min 15 s"),
            (3_600_000, 60_000, "1 h"),
        ),
        *((119_960, 1_000, "2 min"), (59_960, 100, "1 min"), (999.6, 100, "1.0 s"), (3_599_900, 1_000, "1 h")),
        *((5_400_000, 1_800_000, "1 h 30 min"), (90_000_000, 3_600_000, "25 h")),
    ],
)
def test_a_time_is_said_as_exactly_as_it_has_to_be(ms: float, step: float, wanted: str) -> None:
    assert tick_words(ms, step) == wanted
