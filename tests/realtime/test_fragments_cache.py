"""The cache of drawn events stays within its bytes and never keeps what was redacted meanwhile."""

import sys

import pytest
from markupsafe import Markup

from conversations.rendering.render_cache import DrawnCache


def test_least_recently_used_goes_first():
    cache = DrawnCache(max_bytes=16_000)
    for seq in (1, 2, 1, 3):
        cache.get(("c", seq), "c", (seq,), lambda: Markup("x" * 1_600))
    for seq in range(4, 12):
        cache.get(("c", seq), "c", (seq,), lambda: Markup("x" * 1_600))
        cache.get(("c", 1), "c", (1,), lambda: Markup("x" * 1_600))

    assert cache.bytes <= 16_000
    assert cache.get(("c", 1), "c", (1,), lambda: Markup("drawn again")) != "drawn again"
    assert cache.get(("c", 2), "c", (2,), lambda: Markup("drawn again")) == "drawn again"


def test_entry_too_big_to_keep_is_drawn_each_time():
    cache = DrawnCache(max_bytes=8_000)

    cache.get(("c", 1), "c", (1,), lambda: Markup("x" * 2_000))

    assert len(cache) == 0


def test_forgotten_event_takes_every_drawing_with_it():
    cache = DrawnCache()
    for key in ("a", "b"):
        cache.get(("c", key), "c", (1, 2), lambda: Markup("x"))

    cache.forget("c", 2)

    assert (len(cache), cache.bytes, dict(cache._by_event)) == (0, 0, {})


def test_drawing_that_was_under_way_while_its_event_was_forgotten_is_not_kept():
    cache = DrawnCache()

    def make() -> Markup:
        cache.forget("c", 1)
        return Markup("secret")

    cache.get(("c", 1), "c", (1,), make)

    assert len(cache) == 0


@pytest.mark.parametrize("words", ["x" * 1000, "é" * 1000, "\u4e00" * 1000, "x" * 999 + "\N{GRINNING FACE}"])
def test_an_entry_counts_with_the_bytes_it_has_in_memory(words):
    cache = DrawnCache()

    cache.get(("c", 1), "c", (1,), lambda: Markup(words))

    assert sys.getsizeof(words) <= cache.bytes <= sys.getsizeof(words) + 400
