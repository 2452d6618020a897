"""The runs of a conversation as AG-UI events, however many wait behind the one under way."""

import json
from itertools import count

from conversations.asgi.agui import thread_encoder
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
        writes += encoder.encode(Stored("c", next(seqs), kind, 1_000_000, "agent:A", run, None, None, body))
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


def started(run):
    return ("run.started", run, {"attempt": 1})


def output(run, text, turn=0):
    return ("output", run, {"agent": "A", "turn": turn, "final": True, "text": text})


def token(run, text):
    return ("token", run, {"agent": "A", "turn": 0, "text": text})


def done(run):
    return ("run.done", run, {})


def runs_of(events):
    return [event.run_id for event in events if event.type == "RUN_STARTED"]


def test_a_run_that_ends_beside_another_is_streamed_after_it():
    events = streamed(
        queued("a"), queued("b"), started("a"), started("b"),
        output("b", "b. "), done("b"), output("a", "a. "), done("a"),
    )  # fmt: skip

    assert (runs_of(events), text_of(events)) == (["a", "b"], "a. b. ")


def test_a_run_that_is_cancelled_in_the_queue_is_streamed_after_the_one_at_work():
    events = streamed(queued("a"), queued("b"), started("a"), ("run.cancelled", "b", {}), output("a", "a. "), done("a"))

    assert runs_of(events) == ["a", "b"]
    assert events[-1].outcome.type == "cancelled"


def test_a_run_beside_another_goes_on_live_once_that_one_ends():
    events = streamed(
        queued("a"), queued("b"), started("a"), started("b"), token("b", "one "), done("a"),
        token("b", "two "), output("b", "one two three"), done("b"),
    )  # fmt: skip

    assert (runs_of(events), text_of(events)) == (["a", "b"], "one two three")


def test_the_words_of_an_answer_that_is_whole_are_kept_once(monkeypatch):
    monkeypatch.setattr(thread_encoder, "MAX_HELD", 1_000)
    tokens = [token("b", "x" * 50) for _ in range(5)]

    events = streamed(
        queued("a"), queued("b"), started("a"), started("b"), *tokens, output("b", "x" * 500), done("b"),
        done("a"),
    )  # fmt: skip

    assert text_of(events) == "x" * 500


def test_a_run_that_exceeds_what_is_kept_is_left_out_as_a_whole(monkeypatch):
    monkeypatch.setattr(thread_encoder, "MAX_HELD", 1_000)

    events = streamed(
        queued("a"), queued("b"), started("a"), started("b"), output("b", "x" * 2_000), done("b"), done("a"),
        queued("c"), *played("c"),
    )  # fmt: skip

    assert (runs_of(events), text_of(events)) == (["a", "c"], "c. ")


def test_a_run_that_waits_for_a_decision_lets_the_other_go_on_and_gets_a_new_id_after_it():
    request = {"agent": "A", "approval_id": "ask", "name": "send", "tool_call": "call", "args": {}}
    events = streamed(
        queued("a"), queued("b"), started("a"), started("b"), output("b", "b. "), done("b"),
        ("approval.requested", "a", request), ("run.waiting", "a", {"reason": "approval"}),
        ("approval.decided", "a", {**request, "decision": "approve"}), started("a"), output("a", "a. "), done("a"),
    )  # fmt: skip

    assert (runs_of(events), text_of(events)) == (["a", "b", "a.2"], "b. a. ")


def requested(run, id_, **fields):
    call = {"name": "send", "tool_call": f"call-{id_}", "args": {"to": "a@b.example"}}
    return ("approval.requested", run, {"agent": "A", "approval_id": id_, **call, **fields})


def waiting(run):
    return ("run.waiting", run, {"reason": "approval"})


def decided(run, id_, decision="approve"):
    return ("approval.decided", run, {"approval_id": id_, "tool_call": f"call-{id_}", "decision": decision})


def outcomes(events):
    ends = [event.outcome for event in events if event.type == "RUN_FINISHED"]
    return [[interrupt.id for interrupt in getattr(end, "interrupts", [])] for end in ends]


def test_a_request_inside_a_call_ends_the_run_with_an_interrupt_that_names_the_call():
    events = streamed(queued("a"), started("a"), requested("a", "x", parent_call="around"), waiting("a"))

    (interrupt,) = events[-1].outcome.interrupts
    assert (interrupt.id, interrupt.tool_call_id, interrupt.reason) == ("x", None, "switchboard:approval")
    assert interrupt.metadata["switchboard"]["name"] == "send"
    assert interrupt.metadata["switchboard"]["arguments"] == {"to": "a@b.example"}
    assert not any("TOOL_CALL" in kind for kind in kinds(events))


def test_a_rejection_inside_a_call_has_no_result_of_a_call_that_was_not_streamed():
    request = requested("a", "x", parent_call="around")

    events = streamed(
        queued("a"), started("a"), request, waiting("a"), decided("a", "x", "reject"), started("a"), *played("a")[1:]
    )

    assert outcomes(events) == [["x"], []]
    assert not any("TOOL_CALL" in kind for kind in kinds(events))


def test_a_request_inside_a_call_beside_another_run_is_kept_until_that_one_ends():
    inner = requested("b", "x", parent_call="around")

    events = streamed(queued("a"), queued("b"), started("a"), started("b"), inner, waiting("b"), done("a"))

    assert outcomes(events) == [[], ["x"]]


def test_a_run_that_waits_for_more_decisions_says_so_after_each():
    requests = requested("a", "x"), requested("a", "y"), requested("a", "z")
    expired = ("approval.expired", "a", {"approval_id": "y", "tool_call": "call-y"})

    events = streamed(
        queued("a"), started("a"), *requests, waiting("a"), decided("a", "x", "reject"), expired, decided("a", "z"),
        *played("a"),
    )  # fmt: skip

    assert outcomes(events) == [["x", "y", "z"], ["y", "z"], ["z"], []]
    assert runs_of(events) == ["a", "a.2", "a.3", "a.4"]
    assert kinds(events).count("TOOL_CALL_RESULT") == 1


def test_requests_that_are_withdrawn_with_their_run_make_one_more_run():
    withdrawn = [("approval.cancelled", "a", {"approval_id": id_, "tool_call": f"call-{id_}"}) for id_ in "xy"]
    cancelled = ("run.cancelled", "a", {"reason": "by user:otto"})

    events = streamed(
        queued("a"), started("a"), requested("a", "x"), requested("a", "y"), waiting("a"), *withdrawn, cancelled
    )

    assert runs_of(events) == ["a", "a.2"]
    assert events[-1].outcome.type == "cancelled"
