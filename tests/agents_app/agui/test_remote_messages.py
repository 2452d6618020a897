"""Messages that a remote agent has open at the same time are said one after the other, however they end."""

import json

import pytest

from agents_app.agui.event_reader import event_of
from agents_app.agui.remote_model import _RemoteRun

BEGUN = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
DONE = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


def start(id_):
    return {"type": "TEXT_MESSAGE_START", "messageId": id_, "role": "assistant"}


def text(id_, words):
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": words}


def end(id_):
    return {"type": "TEXT_MESSAGE_END", "messageId": id_}


def streamed(*events):
    run = _RemoteRun("Weather")
    return "".join(piece for event in (BEGUN, *events) for piece in run.on_event(event_of(json.dumps(event).encode())))


TWO_OPEN = (start("A"), start("B"), text("A", "a"), text("B", "b"))


@pytest.mark.parametrize("ends", [(), (end("A"),), (end("B"),), (end("B"), end("A"))], ids=["none", "A", "B", "both"])
def test_a_run_that_ends_says_what_is_open_in_order(ends):
    assert streamed(*TWO_OPEN, *ends, DONE) == "a\n\nb"


def test_a_chunk_of_a_new_message_ends_those_that_are_open():
    chunk = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "C", "delta": "c"}

    assert streamed(*TWO_OPEN, end("B"), chunk, DONE) == "a\n\nb\n\nc"


def test_an_id_that_begins_again_is_open_until_it_ends_again():
    again = (start("C"), start("B"), text("C", "c"), text("B", "more"), end("C"), text("B", " of it"), end("B"))

    assert streamed(*TWO_OPEN, end("B"), end("A"), *again, DONE) == "a\n\nb\n\nc\n\nmore of it"
