"""Hues as far from each other as there are, then patterns beside them."""

import re
from pathlib import Path

from conversations.rendering.hue_slots import HUES, PALETTE, SLOTS, hue_of, pattern_of, slots

ROOT = Path(__file__).resolve().parents[2]
COLOR = re.compile(r"--agent-\d+: light-dark\(oklch\(([\d.]+)% ([\d.]+) ([\d.]+)\)")


def test_the_palette_is_that_of_the_style_sheet() -> None:
    css = (ROOT / "static/css/tokens.css").read_text()

    assert [tuple(map(float, color)) for color in COLOR.findall(css)] == [tuple(map(float, color)) for color in PALETTE]


def test_whoever_has_no_free_hue_of_its_own_gets_the_farthest_one() -> None:
    assert slots("abc", lambda _: 3) == {"a": 3, "b": 4, "c": 1}
    assert slots("abc", lambda name: {"a": 3, "b": 5, "c": 5}[name])["c"] not in (3, 4, 5), "4 is near 5"


def test_a_hundred_agents_share_hues_only_with_another_pattern() -> None:
    given = slots((f"Agent {number}" for number in range(100)), lambda name: 7)

    first, looks = list(given.values())[:SLOTS], {(hue_of(slot), pattern_of(slot)) for slot in given.values()}
    assert [pattern_of(slot) for slot in first] == sorted(pattern_of(slot) for slot in first), (
        "none while hues are free"
    )
    assert len(looks) == len(set(first)) == SLOTS
    assert {hue_of(slot) for slot in first[:HUES]} == set(range(1, HUES + 1))
