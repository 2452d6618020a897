"""Times of the record as datetimes: exact in all years there are."""

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest

from conversations.core.micros import YEAR_10000, nearest_datetime, to_datetime, to_micros


def test_every_microsecond_comes_back():
    dice = random.Random(1)
    for at in (0, 1, YEAR_10000 - 1, *(dice.randrange(YEAR_10000) for _ in range(2_000))):
        assert to_micros(to_datetime(at)) == at


def test_a_zone_is_heeded_and_none_is_utc():
    noon = datetime(2026, 11, 22, 12, 0, 0, 7)

    assert to_datetime(to_micros(noon)) == noon.replace(tzinfo=UTC)
    assert to_micros(noon.replace(tzinfo=timezone(timedelta(hours=2)))) == to_micros(noon) - 7_200_000_000


def test_outside_of_the_years_there_are_is_an_error_or_the_nearest_moment():
    with pytest.raises(OverflowError):
        to_datetime(YEAR_10000)

    assert nearest_datetime(YEAR_10000) == datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert nearest_datetime(-1) == datetime(1970, 1, 1, tzinfo=UTC)
