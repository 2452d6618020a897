"""Boxes, labels and lines of a drawn graph: nothing lies over anything else, whatever the graph."""

import re
from collections.abc import Iterator
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conversations.rendering.layered_layout import Layout, Line, Rectangle, layout
from tests.support.tiers import rounds

NUMBER = re.compile(r"-?\d+\.?\d*")
SHAPES = {
    "one": (1, [(0, 0)]),
    "alone": (3, []),
    "there and back, three times each": (2, [(0, 1), (1, 0)] * 3),
    "a ring": (9, [(n, (n + 1) % 9) for n in range(9)]),
    "a star": (60, [(n, 0) for n in range(1, 60)] + [(0, n) for n in range(1, 60)]),
    "everybody with everybody": (12, [(a, b) for a in range(12) for b in range(12)]),
}


def apart(first: Rectangle, other: Rectangle) -> bool:
    """Return whether two do not touch."""
    beside = first.right < other.x or other.right < first.x
    return beside or first.y + first.height < other.y or other.y + other.height < first.y


def points(line: Line) -> Iterator[tuple[float, float]]:
    """Walk along a line's two curves, ends left out."""
    for part in re.findall(r"M[^M]+", line.path):
        numbers = [float(number) for number in NUMBER.findall(part)]
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = zip(numbers[::2], numbers[1::2], strict=True)
        for n in range(1, 12):
            t, u = n / 12, 1 - n / 12
            shares = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
            yield (
                sum(a * b for a, b in zip(shares, (x0, x1, x2, x3), strict=True)),
                sum(a * b for a, b in zip(shares, (y0, y1, y2, y3), strict=True)),
            )


def prove(drawn: Layout) -> None:
    """No box or label touches another; no line crosses one; all is in the picture."""
    everything = [*drawn.boxes, *(line.label for line in drawn.lines)]
    assert all(apart(shape, other) for shape, other in combinations(everything, 2))
    assert all(shape.x >= 0 and shape.right <= drawn.width and shape.y >= 0 for shape in everything)
    assert all(shape.y + shape.height <= drawn.height for shape in everything)
    columns = {(shape.x, shape.right) for shape in everything}
    for line in drawn.lines:
        assert all(not left < x < right for x, _ in points(line) for left, right in columns)


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_overlaps_in(shape: str) -> None:
    prove(layout(*SHAPES[shape], roots=[0]))


@settings(max_examples=rounds(60, 400), deadline=None)
@given(st.integers(1, 30), st.data())
def test_nothing_overlaps_in_any_graph(boxes: int, data: st.DataObject) -> None:
    box = st.integers(0, boxes - 1)
    lines = data.draw(st.lists(st.tuples(box, box), max_size=60))

    prove(layout(boxes, lines, data.draw(st.lists(box, max_size=5)), fills_room=data.draw(st.booleans())))


def test_two_hundred_and_their_lines_are_placed_without_overlaps() -> None:
    random = Random(7)
    lines = [(random.randrange(200), random.randrange(200)) for _ in range(400)]

    prove(layout(200, lines, range(20)))


def test_a_box_stands_right_of_the_one_that_leads_to_it_and_level_with_it() -> None:
    drawn = layout(3, [(0, 1), (1, 2)], roots=[0])

    assert drawn.boxes[0].right < drawn.lines[0].label.x < drawn.boxes[1].x < drawn.boxes[2].x
    assert len({box.middle for box in drawn.boxes}) == 1


def test_a_chain_that_fills_its_room_goes_up_and_down() -> None:
    drawn = layout(3, [(0, 1), (1, 2)], roots=[0], fills_room=True)

    assert drawn.boxes[0].middle == drawn.boxes[2].middle
    assert drawn.boxes[0].middle < drawn.lines[0].label.middle < drawn.boxes[1].middle


def test_a_drawing_that_is_high_enough_is_not_staggered() -> None:
    drawn = layout(9, [(0, n) for n in range(1, 9)], roots=[0], fills_room=True)

    assert drawn.boxes[0].middle == pytest.approx(sum(box.middle for box in drawn.boxes[1:]) / 8, abs=0.2)


def test_the_same_graph_is_drawn_the_same() -> None:
    lines = [(0, 1), (2, 1), (1, 3), (3, 3)]

    assert layout(4, lines, [0]) == layout(4, lines, [0])
