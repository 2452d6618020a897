"""The pieces of an answer: stored joined, deltas_text each, with the same numbers to whoever comes later."""

import json
from contextlib import closing

import pytest

from agents_app.worker.event_writer import RunEventWriter
from conversations.asgi.responses.stored_response import received_of
from conversations.asgi.responses.stream_encoder import Encoder
from conversations.core.errors import Busy
from conversations.events import log
from conversations.events.log.write_job import FULL
from conversations.models import Run
from conversations.runs import claims
from conversations.runs.responses import stored_response
from tests.support import stand_in
from tests.support.claiming import served_agents
from tests.support.live import until
from tests.support.response_desk import Desk
from tests.support.responses import ask
from tests.support.stand_in import MODEL

pytestmark = pytest.mark.django_db(transaction=True)
FACTS = {"agent": MODEL, "turn": 1}


@pytest.fixture
def writer():
    writer = log.WriterThreads()
    yield writer
    writer.close()


@pytest.fixture
def pen(writer):
    """Write for a claimed run that answers a client."""
    stand_in.register()
    ask("hello", agent=MODEL)
    (claim,) = claims.claim("test", served_agents(stand_in.TEAM, MODEL), at_most=1)
    pen = RunEventWriter(claim, writer)
    pen.keeps_lengths = True
    return pen


def say(pen, *pieces, start=0):
    for index, piece in enumerate(pieces, start):
        if not pen.add_piece(1, piece):
            pen.token(piece, FACTS | {"index": index})


def stored(writer, *kinds):
    writer.start()
    writer.close()
    run = Run.objects.get()
    events = log.read_after(run.conversation.key, run.queued_seq)
    return [json.loads(event.body) for event in events if event.kind in (kinds or ("token",))]


def test_pieces_pass_the_queue_once_and_are_stored_with_their_lengths(pen, writer):
    say(pen, "Good", " ", "day", " 🙂", "!")

    assert writer.waiting_jobs == 1
    (token,) = stored(writer)
    assert (token["text"], token["index"], token["last_index"]) == ("Good day 🙂!", 0, 4)
    assert token["lengths"] == [4, 1, 3, 2, 1]


def test_a_single_piece_and_those_of_other_runs_have_no_lengths(pen, writer):
    say(pen, "one")
    pen._open_tokens.clear()
    pen.keeps_lengths = False
    pen.token("x", {"agent": MODEL, "turn": 2, "index": 0})
    assert pen.add_piece(2, "y")

    single, joined = stored(writer)
    assert "lengths" not in single
    assert (joined["text"], "lengths" in joined) == ("xy", False)


def test_what_is_said_after_another_event_is_stored_after_it(pen, writer):
    say(pen, "before")
    pen.emit({"event": "town_hall.stage", "stage": "filed"})
    say(pen, "after", start=1)

    kinds = [(body["event"], body.get("text")) for body in stored(writer, "token", "town_hall.stage")]
    assert kinds == [("token", "before"), ("town_hall.stage", None), ("token", "after")]


def test_a_part_is_no_larger_than_it_may_be_and_a_taken_one_takes_no_more(pen, writer):
    say(pen, *["x" * 100] * 30)

    writer.start()
    until(lambda: not writer.waiting_jobs)
    say(pen, "last", start=30)
    writer.close()
    run = Run.objects.get()
    tokens = [json.loads(e.body) for e in log.read_after(run.conversation.key, run.queued_seq) if e.kind == "token"]
    assert "".join(token["text"] for token in tokens) == "x" * 3000 + "last"
    assert [token["index"] for token in tokens[1:]] == [token["last_index"] + 1 for token in tokens[:-1]]


def test_at_most_a_full_part_waits_outside_the_queue(pen, writer):
    say(pen, *["x" * 100] * 22)

    assert writer.waiting_jobs == 22 * 100 // (FULL + 100) + 1


def test_a_piece_the_queue_refuses_takes_its_later_ones_with_it_not_others(pen, writer, monkeypatch):
    say(pen, "kept")
    pen._open_tokens[1].take()

    def refuse(*_, **__):
        raise Busy("full")

    with monkeypatch.context() as patch:
        patch.setattr(writer, "submit", refuse)
        say(pen, "dropped", start=1)
    say(pen, "kept too", start=2)

    assert [token["text"] for token in stored(writer)] == ["keptkept too"]


@pytest.fixture
def desk():
    with closing(Desk()) as opened:
        yield opened


def finish(pen, text):
    log.append([pen.claim.event({"event": "output", "turn": 1, "text": text, "final": True})])
    answer = stand_in.Answer(pen.claim)
    answer.turn = 1
    answer.keep_message(text)
    answer.finish()


def test_each_piece_is_an_event_of_the_stream_with_one_number_for_every_reader(pen, writer, desk):
    pieces = ["Good", " day", ", ", "citizen", "."]
    say(pen, *pieces)
    stored(writer)
    finish(pen, "".join(pieces))
    response = Run.objects.get().conversation.key

    whole = desk.get(f"responses/{response}?stream=true").events
    deltas = [event for event in whole if event["type"] == "response.output_text.delta"]

    assert [event["delta"] for event in deltas] == pieces
    assert [event["sequence_number"] for event in whole] == list(range(len(whole)))
    for number in range(len(whole)):
        assert desk.get(f"responses/{response}?stream=true&starting_after={number}").events == whole[number + 1 :]


@pytest.mark.parametrize("text", ["", "Good", "Good day, cit", "Good day, citizen of nowhere."])
def test_a_text_changed_since_leaves_the_numbers_after_it_as_they_were(pen, writer, text):
    say(pen, "Good", " day", ", ", "citizen", ".")
    stored(writer)
    finish(pen, "Good day, citizen.")
    answer = stored_response.find(Run.objects.get().conversation.key)
    events = log.read_after(answer.conversation, answer.seq)

    before, after = (frames(answer, [changed(event, new) for event in events]) for new in (None, text))

    assert [(f.kind, f.number) for f in after] == [(f.kind, f.number) for f in before]
    deltas_text = "".join(json.loads(f.data)["delta"] for f in after if f.kind == "response.output_text.delta")
    assert deltas_text == text


def changed(event, text):
    """Return an event of an answer as it is after its text was replaced."""
    if event.kind not in ("token", "output") or text is None:
        return event
    return event._replace(body=json.dumps(json.loads(event.body) | {"text": text}))


def frames(answer, events):
    encoder = Encoder(received_of(answer))
    return [*encoder.begin(), *(frame for event in events for frame in encoder.encode(event))]
