"""Assign hues and patterns to agents that are shown together: hues as far from each other as possible, and once all are
taken a pattern that distinguishes those that share one. Called by `participant_marks`.

A slot is a number from 1: the ten hues without a pattern, then the ten with the first one, and so on.
"""

from collections.abc import Callable, Iterable
from math import cos, dist, radians, sin

HUES = 10  # the palette's agents (static/css/tokens.css)
PATTERNS = 4  # none, and those of static/css/components/mark.css
SLOTS = HUES * PATTERNS
PALETTE = (
    (52.2, 0.190, 267), (40.4, 0.091, 73), (49.6, 0.107, 160), (42.6, 0.186, 346), (39.0, 0.180, 300),
    (53.0, 0.154, 38), (33.0, 0.078, 122), (41.2, 0.109, 246), (35.0, 0.105, 5), (51.5, 0.052, 291),
)  # fmt: skip
"""Lightness in percent, chroma and angle of each hue on a light ground (oklch, static/css/tokens.css)."""


def _oklab(lightness: float, chroma: float, angle: float) -> tuple[float, float, float]:
    return lightness / 100, chroma * cos(radians(angle)), chroma * sin(radians(angle))


_PLACES = [_oklab(*color) for color in PALETTE]


def slots(names: Iterable[str], own: Callable[[str], int]) -> dict[str, int]:
    """Return a slot for each name, in order: its `own` hue, unless an earlier name has it, then the free hue farthest
    from those taken. Names beyond all slots keep their own."""
    given: dict[str, int] = {}
    for name in names:
        if name not in given:
            first = len(given) // HUES * HUES  # of the pattern whose hues are given now
            taken = {slot - first for slot in given.values() if slot > first}
            given[name] = first + _free(taken, own(name)) if len(given) < SLOTS else own(name)
    return given


def hue_of(slot: int) -> int:
    """Return the hue of a slot, 1 to 10."""
    return (slot - 1) % HUES + 1


def pattern_of(slot: int) -> int:
    """Return the pattern of a slot, 0 for none."""
    return (slot - 1) // HUES


def _free(taken: set[int], own: int) -> int:
    if own not in taken:
        return own
    free = [hue for hue in range(1, HUES + 1) if hue not in taken]
    return max(free, key=lambda hue: min(dist(_PLACES[hue - 1], _PLACES[other - 1]) for other in taken))
