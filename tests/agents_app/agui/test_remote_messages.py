"""What is said of the messages of a remote agent: of those open at the same time one after the other, however they end;
of its runs the one that was asked for, or else all."""

import asyncio
import json

import pytest

from agents_app.agui import remote_claims
from agents_app.agui.event_reader import event_of
from agents_app.agui.http_stream import RemoteFailed
from agents_app.agui.remote_model import RemoteModel, _RemoteRun
from conversations.core.outbound_address import NONE
from conversations.core.remote_agent_setting import RemoteAgent
from conversations.models import Event

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


REQUESTED = "{requested}"  # in a stream: the id of the run that was asked for


class Replaying(RemoteModel):
    """A model whose server sends these events."""

    def __init__(self, *events):
        super().__init__(RemoteAgent("Weather", "http://127.0.0.1/"), NONE, silence_s=1, most_bytes=1 << 20)
        self.events = events

    async def _pieces(self, body):
        run_id = json.loads(body)["runId"]
        for event in self.events:
            yield f"data: {json.dumps(event).replace(REQUESTED, run_id)}\n\n".encode()


def of_run(id_, words, **end):
    ids = {"threadId": "t", "runId": id_}
    texts = (
        [{"type": "TEXT_MESSAGE_CHUNK", "messageId": f"m-{id_}", "role": "assistant", "delta": words}] if words else []
    )
    return [{"type": "RUN_STARTED", **ids}, *texts, {"type": "RUN_FINISHED", **ids, **end}]


def answer_of(*events):
    response = asyncio.run(Replaying(*events).get_response(None, "hi"))
    return response.output[0].content[0].text if response.output else ""


SNAPSHOT = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "1", "role": "assistant", "content": "from before"}]}
CANCELLED = {"outcome": {"type": "cancelled"}}


@pytest.mark.parametrize(
    ("events", "answer"),
    [
        ([*of_run("old", "OLD"), *of_run(REQUESTED, "hello")], "hello"),
        ([*of_run("older", "OLDER"), *of_run("old", "OLD"), *of_run(REQUESTED, "hello")], "hello"),
        ([*of_run("old", "OLD", **CANCELLED), *of_run(REQUESTED, "hello")], "hello"),
        ([*of_run("old", "")[:1], SNAPSHOT, *of_run("old", "")[1:], *of_run(REQUESTED, "")], ""),
        (of_run("its own", "hello"), "hello"),
        ([*of_run("its own", "hello"), *of_run("its second", "again")], "hello\n\nagain"),
    ],
    ids=["one before", "two before", "a stopped one before", "a snapshot before", "an id of its own", "ids of its own"],
)
def test_of_several_runs_the_one_that_was_asked_for_is_the_answer(events, answer):
    assert answer_of(*events) == answer


@pytest.mark.parametrize("id_", [REQUESTED, "its own"])
def test_a_run_that_was_stopped_there_has_failed(id_):
    with pytest.raises(RemoteFailed, match="was stopped on its server"):
        answer_of(*of_run(id_, "hel", **CANCELLED))


@pytest.mark.django_db(transaction=True)
def test_what_an_agent_reports_is_stored_without_the_secrets_in_it():
    call = {"event": "tool_step", "name": "send", "tool_call_id": "c1", "args_raw": '{"api_key": "PLANTED01abcdef"}'}
    state = {"event": remote_claims.STATE, "agent": "Far", "snapshot": {"note": "sk-PLANTED02aaaabbbb", "city": "Ulm"}}

    remote_claims.store("c", [call, state])

    bodies = list(Event.objects.order_by("seq").values_list("body", flat=True))
    assert len(bodies) == 2
    assert "PLANTED" not in "".join(bodies)
    assert remote_claims.latest_state("c", "Far")["city"] == "Ulm"
