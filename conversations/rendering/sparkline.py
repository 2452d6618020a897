"""A few counts as a small SVG path of bars. No query, no color: CSS has those."""

from collections.abc import Sequence
from math import ceil, log
from typing import NamedTuple

BAR, GAP = 2, 1
HEIGHT = 20
LOW = 10  # a row's bars are full from this count on: one event is a low bar, however quiet the rest


class Sparkline(NamedTuple):
    """One drawing: its size, path and description."""

    width: int
    height: int
    path: str
    words: str


def sparkline(counts: Sequence[int], what: str = "event", when: str = "in the last hour") -> Sparkline:
    """Draw counts, oldest first, on a logarithmic scale, so that one busy moment does not hide the others. `what` is
    the noun of what was counted, in the singular."""
    top = log(1 + max(LOW, *counts))
    drawn = [
        f"M{number * (BAR + GAP)} {HEIGHT}v-{max(2, ceil(HEIGHT * log(1 + count) / top))}h{BAR}V{HEIGHT}"
        for number, count in enumerate(counts)
        if count
    ]
    total = sum(counts)
    words = f"{total:,} {what}{'s' * (total != 1)} {when}"
    return Sparkline(len(counts) * (BAR + GAP), HEIGHT, "".join(drawn), words)
