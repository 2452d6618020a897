"""The graph of handoffs: each is one line from box to box, and no box lies over another."""

import re
from itertools import combinations

import pytest

from conversations.rendering.agents_graph import HandoffGraph, graph_of
from conversations.rendering.participant_marks import mark_for_name

TEAMS = {
    "a cycle": ("ABC", ["AB", "BC", "CA", "AA"]),
    "a desk of specialists": ("ABCDEFG", [f"A{name}" for name in "BCDEFG"] + [f"{name}A" for name in "BCDEFG"]),
    "everybody to everybody": ("ABCDE", [a + b for a in "ABCDE" for b in "ABCDE" if a != b]),
    "nobody to nobody": ("AB", []),
}


def drawn(team: str) -> HandoffGraph:
    names, links = TEAMS[team]
    return graph_of([(name, mark_for_name(name)) for name in names], [(a, b) for a, b in links], ["A"])


@pytest.mark.parametrize("team", TEAMS)
def test_no_box_lies_over_another_and_all_is_in_the_picture(team: str):
    graph = drawn(team)

    boxes = [node.place for node in graph.nodes]
    for first, other in combinations(boxes, 2):
        assert (
            first.right < other.x
            or other.right < first.x
            or first.y + first.height < other.y
            or other.y + other.height < first.y
        )
    assert all(box.x >= 0 and box.right <= graph.width and box.y + box.height <= graph.height for box in boxes)


@pytest.mark.parametrize("team", TEAMS)
def test_a_handoff_is_one_line_from_the_one_to_the_other(team: str):
    graph = drawn(team)
    places = {node.mark.name: node.place for node in graph.nodes}

    for (giver, taker), arc in zip(TEAMS[team][1], graph.arcs, strict=True):
        numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", arc.path)]
        tip = [float(number) for number in re.findall(r"-?\d+\.?\d*", arc.head)]
        assert arc.path.count("M") == 1
        assert arc.words == f"{giver} hands off to {taker}"
        for (x, y), place in (((numbers[0], numbers[1]), places[giver]), ((tip[0], tip[1]), places[taker])):
            assert x in (round(place.x, 1), round(place.right, 1))
            assert place.y <= y <= place.y + place.height


def test_a_handoff_to_who_is_not_in_the_team_is_left_out():
    graph = graph_of([("A", mark_for_name("A"))], [("A", "gone"), ("gone", "A")], ["A", "gone"])

    assert len(graph.nodes) == 1
    assert graph.arcs == []
