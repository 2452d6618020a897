"""Sizes in bytes as people read them."""

import pytest

from conversations.core.byte_sizes import size

SIZES = {
    0: "0 B",
    1023: "1,023 B",
    1024: "1 KiB",
    1536: "1.5 KiB",
    48 << 20: "48 MiB",
    3 << 30: "3 GiB",
    5 << 50: "5,120 TiB",
}


@pytest.mark.parametrize("number", SIZES)
def test_a_size_is_written_in_the_largest_unit_of_which_there_is_one(number: int) -> None:
    assert size(number) == SIZES[number]
