"""The runs of a conversation as AG-UI events, however many wait behind the one under way."""

import json
from itertools import count

from conversations.asgi.agui.thread_encoder import ThreadCursor, ThreadEncoder
from conversations.events.log.records import Stored
from tests.support.agui import checked, kinds, pieces, text_of

WHOLE_RUN = ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"]
WAITING = 60


def streamed(*events):
    """Return the stream events that (kind, run) make, each with further fields."""
    encoder, seqs = ThreadEncoder("c", ThreadCursor(0)), count(1)
    writes = []
    for kind, run, fields in events:
        body = json.dumps({"event": kind, "run_id": run, **fields})
        writes += encoder.take(Stored("c", next(seqs), kind, 1_000_000, "agent:A", run, None, None, body))
    return checked(pieces(writes))


def queued(run):
    return ("run.queued", run, {"agent": "A", "input_seq": 1})


def played(run):
    output = {"agent": "A", "turn": 0, "final": True, "text": f"{run}. "}
    return [("run.started", run, {"attempt": 1}), ("output", run, output), ("run.done", run, {})]


def test_messages_that_a_run_takes_in_do_not_end_its_stream():
    first, started, *rest = queued("r0"), *played("r0")
    taken_in = [
        event
        for n in range(WAITING)
        for event in (queued(f"t{n}"), ("run.delivered", f"t{n}", {"into": "r0", "step": 1, "input_seq": 1}))
    ]

    events = streamed(first, started, *taken_in, *rest, queued("r1"), *played("r1"))

    assert text_of(events) == "r0. r1. "
    assert [kind for kind in kinds(events) if kind in WHOLE_RUN] == 2 * WHOLE_RUN


def test_every_run_that_waited_is_streamed():
    runs = [f"r{n}" for n in range(WAITING)]

    events = streamed(*map(queued, runs), *[event for run in runs for event in played(run)])

    assert text_of(events) == "".join(f"{run}. " for run in runs)
