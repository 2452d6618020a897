"""A stream's numbers: who comes back with the last one it got is told everything after that, once each."""

import asyncio
import json

import pytest

from conversations.access.accounts import tokens
from conversations.asgi.responses import resource
from conversations.asgi.responses.stored_response import received_of
from conversations.asgi.responses.stream_encoder import Encoder
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Run
from conversations.runs.responses import stored_response
from tests.agents_app.open_responses.test_responding_recorded import (
    REQUESTS,
    items_of,
    needs_requests,
    providing,
    tools_of,
)
from tests.support import stand_in
from tests.support.agents_running import ended_runs
from tests.support.live import until
from tests.support.recorded_streams import api_of, has_refused_calls
from tests.support.responses import ask
from tests.support.stand_in import MODEL
from tests.support.tiers import rounds, sampled, variants

pytestmark = pytest.mark.django_db(transaction=True)
ERROR = {"type": "server_error", "code": "record_unreadable", "message": "later", "param": None}


def numbers(events):
    return [event["sequence_number"] for event in events]


def read(received, events, starting_after=-1):
    """Return the frames that a reader gets of a whole record."""
    encoder = Encoder(received, starting_after)
    made = [*encoder.begin(), *(frame for event in events for frame in encoder.encode(event))]
    return [frame for frame in made if frame.number > starting_after]


def broken_off_after(received, events, count, starting_after=-1, **how):
    """Return what a reader gets whose stream ends after so many events: what it is told, and the end."""
    encoder = Encoder(received, starting_after)
    frames = encoder.begin()
    for event in events[:count]:
        frames += encoder.encode(event)
    frames = [frame for frame in frames if frame.number > starting_after]
    encoder.mark_sent(frames)
    if encoder.final is not None:
        return frames, []
    return frames, encoder.break_off(resource.resource(received, "failed"), **how)


@pytest.mark.slow
@pytest.mark.any_database
@needs_requests
@pytest.mark.parametrize("how", variants([{}, {"error": ERROR}, {"error": ERROR, "at_once": True}]), ids=str)
def test_a_recorded_stream_broken_off_anywhere_goes_on_after_its_last_number(how):
    asked_then, bodies = {}, {}
    for n, path in enumerate(sampled(REQUESTS, one_of=3)):
        stream = path.with_name(path.name.replace(".request.json", ".response.sse"))
        if stream.exists() and not has_refused_calls(stream):
            bodies[f"r{n}"] = stream.read_bytes()
            asked_then[f"r{n}"] = json.loads(path.read_text())["body"]
    with providing(bodies):
        made = [
            ask(items_of(body), agent="Plain model", model=api_of(bodies[name], name), tools=tools_of(body))
            for name, body in asked_then.items()
        ]
        ended_runs(len(made), within=60)

    ends = 0
    for response in made:
        stored = stored_response.find(response)
        received, events = received_of(stored), log.read_after(stored.conversation, stored.seq)
        whole = read(received, events)
        assert [frame.number for frame in whole] == list(range(len(whole)))
        for count in range(len(events)):
            frames, end = broken_off_after(received, events, count, **how)
            ends += len(end)
            last = json.loads((end or frames)[-1].data)["sequence_number"]
            assert frames + read(received, events, last) == whole
            assert {frame.number for frame in end} <= {frames[-1].number}
            # and broken off once more, before anything new was told
            again, end = broken_off_after(received, events, 0, last, **how)
            assert again == []
            assert {frame.number for frame in end} == {last}
    assert ends > len(made) >= rounds(12, 35)


def test_a_stream_of_a_revoked_reader_goes_on_for_its_next_token(desk, monkeypatch):
    monkeypatch.setattr("conversations.access.action_context.commit_listeners.notify_revoked", lambda: None)

    async def talk():
        desk.runtime.socket_registry.start()
        async with desk.asking({"model": MODEL, "input": "hold", "stream": True}) as asking:
            await asking.writes(5)
            await desk.context.do(tokens.revoke_token, SYSTEM, "asker-operator")
            answer = await asking.answer()
        await desk.runtime.socket_registry.stop()
        return answer.events

    first = desk.run(talk)
    stand_in.RELEASED.set()
    until(lambda: Run.objects.get().status == "done")
    desk.token = tokens.make_token(SYSTEM, "next", "operator")
    response, last = first[0]["response"]["id"], first[-1]["sequence_number"]
    again = desk.get(f"responses/{response}?stream=true&starting_after={last}").events
    whole = desk.get(f"responses/{response}?stream=true").events

    assert [event["type"] for event in first[-2:]] == ["error", "response.failed"]
    assert first[:-2] + again == whole
    assert numbers(whole) == list(range(len(whole)))


def test_a_stream_of_a_server_that_stops_goes_on_at_the_next(desk):
    async def talk():
        async with desk.asking({"model": MODEL, "input": "hold", "stream": True}) as asking:
            await asking.writes(5)
            asking.stopping.set()
            return (await asking.answer()).events

    first = desk.run(talk)
    stand_in.RELEASED.set()
    until(lambda: Run.objects.get().status == "done")
    response, last = first[0]["response"]["id"], first[-1]["sequence_number"]
    again = desk.get(f"responses/{response}?stream=true&starting_after={last}").events
    whole = desk.get(f"responses/{response}?stream=true").events

    frames = [event for event in first if event == whole[event["sequence_number"]]]
    assert first[-1]["type"] == "response.failed"
    assert numbers(first[len(frames) :]) == [last] * (len(first) - len(frames))
    assert frames + again == whole


def test_a_stream_whose_record_cannot_be_read_goes_on_once_it_can(desk, monkeypatch):
    monkeypatch.setattr("conversations.asgi.responses.shared.READ_PATIENCE", 0.2)
    reads = log.read_after

    async def talk():
        async with desk.asking({"model": MODEL, "input": "hold", "stream": True}) as asking:
            await asking.writes(5)
            monkeypatch.setattr(desk.context.followers, "next", broken)
            return (await asking.answer()).events

    async def broken(follower, seconds):
        await asyncio.sleep(0.05)
        raise OSError("the disk is away")

    first = desk.run(talk)
    monkeypatch.undo()
    assert log.read_after is reads
    stand_in.RELEASED.set()
    until(lambda: Run.objects.get().status == "done")
    response, last = first[0]["response"]["id"], first[-1]["sequence_number"]
    again = desk.get(f"responses/{response}?stream=true&starting_after={last}").events
    whole = desk.get(f"responses/{response}?stream=true").events

    frames = [event for event in first if event == whole[event["sequence_number"]]]
    assert frames + again == whole
