"""What a model is given of a call whose arguments a person changed: the tool's output, and what ran."""

import json

import pytest
from agents import ToolOutputImage, ToolOutputText

from agents_app.approval_gate.output_after_edit import NOTE, parted, with_change
from agents_app.town_hall.forms import Filed

CHANGE = {"note": NOTE, "ran_with": {"n": 5}, "instead_of": {"n": 4}}


def changed(given):
    return with_change(given, requested='{"n": 4}', ran='{"n": 5}')


@pytest.mark.parametrize(
    ("given", "own"),
    [
        (Filed(reference="TH-1", status="filed"), {"reference": "TH-1", "status": "filed"}),
        ({"reference": "TH-1"}, {"reference": "TH-1"}),
        ('{"reference": "TH-1"}', {"reference": "TH-1"}),
        (ToolOutputText(text='{"reference": "TH-1"}'), {"reference": "TH-1"}),
        ({"type": "text", "text": "done"}, "done"),
        ("done", "done"),
        (["a", 1], ["a", 1]),
        (7, 7),
        (None, None),
        ("", ""),
        ({"changed_by_person": "mine"}, {"changed_by_person": "mine"}),
        ({"output": 1}, {"output": 1}),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_an_output_stays_what_it_is_and_says_what_ran(given, own):
    made = json.loads(changed(given))

    assert parted(made) == (own, CHANGE)


def test_an_image_stays_an_image_with_the_note_before_it():
    image = ToolOutputImage(image_url="data:,x")

    note, same = changed([image])

    assert (json.loads(note.text), same) == ({"changed_by_person": CHANGE}, image)


def test_an_output_that_nobody_changed_is_its_own():
    assert parted({"output": "done"}) == ({"output": "done"}, {})
