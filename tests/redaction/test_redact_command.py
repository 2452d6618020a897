"""The numbers that the commands `redact` and `expire` take: one that cannot be is refused, and costs no memory."""

import tracemalloc

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("numbers", ["1-3000000", f"1-{10**40}", "9-3", "0x1", "1-2-3", str(10**40), "³"])
@pytest.mark.parametrize("option", ["", "--audit"])
def test_numbers_that_cannot_be_are_refused_before_they_are_listed(numbers, option):
    tracemalloc.start()
    try:
        with pytest.raises(CommandError, match="must be an event number, or a range of at most"):
            call_command("redact", "talk", *([option] if option else []), numbers, "--reason", "r", "--dry-run")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 20 << 20  # bytes


@pytest.mark.parametrize("days", ["nan", "inf", "-inf", "0", "-1"])
def test_a_number_of_days_that_cannot_be_is_refused(days):
    with pytest.raises(CommandError, match="--days must be a number greater than 0"):
        call_command("expire", f"--days={days}", "--reason", "r")
