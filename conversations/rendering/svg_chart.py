"""Server-rendered SVG charts: stacked bars, or lines. No query, no color: CSS has those.

The drawing is stretched to its place, so text is beside it in HTML, and a table has every number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

WIDTH, HEIGHT = 960.0, 120.0
GAP = 0.15  # of a bar's place
MIN_BAR_HEIGHT = 1.5  # of a bar that is not nothing


@dataclass(frozen=True, slots=True)
class ChartBar:
    """One rectangle; `series` is the number of its series."""

    series: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One line, as an SVG path; a value without neighbours is a dash."""

    series: int
    path: str


def top_of(values: Sequence[float]) -> float:
    """Return a round number that no value exceeds."""
    most = max(values, default=0)
    if most <= 0:
        return 1.0
    step = 10.0 ** floor(log10(most))
    return float(next(step * times for times in (1, 2, 5, 10) if step * times >= most))


def bars(series: Sequence[Sequence[float]], places: int, top: float) -> list[ChartBar]:
    """Return the stacked bars of each place, the first series at the bottom."""
    slot_width = WIDTH / max(1, places)
    drawn = []
    for number in range(places):
        ground = HEIGHT
        for index, values in enumerate(series):
            height = values[number] / top * HEIGHT
            if height <= 0:
                continue
            height = max(MIN_BAR_HEIGHT, height)
            ground -= height
            x, width = number * slot_width + slot_width * GAP / 2, slot_width * (1 - GAP)
            drawn.append(ChartBar(index, round(x, 2), round(max(0.0, ground), 2), round(width, 2), round(height, 2)))
    return drawn


def lines(series: Sequence[Sequence[float | None]], top: float) -> list[ChartLine]:
    """Return each series as a line, interrupted where a value is missing."""
    return [ChartLine(index, path) for index, values in enumerate(series) if (path := _path(values, top))]


def _path(values: Sequence[float | None], top: float) -> str:
    slot_width = WIDTH / max(1, len(values))
    commands, was_known = [], False
    for number, value in enumerate(values):
        if value is not None:
            x, y = round((number + 0.5) * slot_width, 2), round(HEIGHT - min(value, top) / top * HEIGHT, 2)
            is_last = number + 1 == len(values) or values[number + 1] is None
            if is_last and not was_known:
                commands.append(f"M{round(x - slot_width / 3, 2)} {y}h{round(slot_width * 2 / 3, 2)}")
            else:
                commands.append(f"{'L' if was_known else 'M'}{x} {y}")
        was_known = value is not None
    return "".join(commands)
