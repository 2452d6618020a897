"""Sizes in bytes as people read them: 48 MiB."""

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(number: int) -> str:
    """Write a number of bytes in the largest unit of which there is at least one, to a tenth: 7 B, 1.5 KiB, 48 MiB."""
    power = min(max(number.bit_length() - 1, 0) // 10, len(UNITS) - 1)
    return f"{number / 1024**power:,.1f}".removesuffix(".0") + f" {UNITS[power]}"
