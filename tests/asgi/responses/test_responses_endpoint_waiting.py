"""`POST /v1/responses`: clients that leave, wait or fall behind, and runs that wait or are stopped."""

import asyncio

import pytest

from conversations.core.principals import SYSTEM
from conversations.events.log.rebuild import rebuild
from conversations.models import Conversation, Response, Run
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide as approvals
from tests.asgi.responses.test_responses_endpoint import RAIN, replayed, stored_bodies, text_of
from tests.support import stand_in
from tests.support.cast import cast
from tests.support.live import until
from tests.support.stand_in import MODEL

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_client_that_leaves_ends_nothing(desk):
    async def leave():
        async with desk.asking({"model": MODEL, "input": "hold", "stream": True}) as asking:
            await asking.writes(5)
            asking.leave()
            await asking.task
        assert desk.context.followers.count == 0

    desk.run(leave)
    stand_in.RELEASED.set()

    until(lambda: Run.objects.get().status == "done")
    response = Response.objects.get()
    assert (response.status, stored_bodies("response.completed")[0]["output"][0]["status"]) == (
        "completed",
        "completed",
    )


def test_nobody_waits_for_a_response_in_the_background(desk):
    answer = desk.create("hold", background=True)

    assert (answer.status, answer.json["status"], answer.json["background"]) == (200, "in_progress", True)
    stand_in.RELEASED.set()
    until(lambda: Response.objects.get().status == "completed")
    assert desk.create("on", previous_response_id=answer.json["id"]).json["status"] == "completed"


def test_a_response_in_a_busy_conversation_is_queued_and_says_so(desk):
    async def both():
        where = {"metadata": {"conversation_id": "busy"}}
        async with (
            desk.asking({"model": MODEL, "input": "hold", **where}) as first,
            desk.asking({"model": MODEL, "input": "x", "background": True, **where}) as never,
        ):
            await never.task
            await desk.context.do(until, lambda: Run.objects.filter(status="running").exists())
            async with desk.asking({"model": MODEL, "input": "next", "stream": True, **where}) as second:
                await second.writes(2)
                stand_in.RELEASED.set()
                return await first.answer(), await second.answer()

    first, second = desk.run(both)

    assert [event["type"] for event in second.events[:2]] == ["response.created", "response.queued"]
    assert second.events[0]["response"]["status"] == "queued"
    assert (first.json["status"], second.events[-1]["type"]) == ("completed", "response.completed")


def test_a_run_that_waits_for_a_person_stays_in_progress(desk, monkeypatch):
    monkeypatch.setattr("conversations.asgi.responses.endpoint.SILENCE", 0.5)
    people = cast()

    async def decide():
        async with desk.asking({"model": MODEL, "input": "ask", "stream": True}) as asking:
            pieces_ = await asking.writes(3)
            while not pieces_[-1].startswith(b":"):
                pieces_ = await asking.writes(len(pieces_) + 1)
            run = await desk.context.do(Run.objects.get)
            assert run.status == "waiting"
            response = await desk.context.do(Response.objects.get)
            await desk.context.do(approvals.decide, people["approver"], f"ask-{response.id}"[:64], "approve")
            return await asking.answer()

    answer = desk.run(decide)

    assert b": keep-alive\n\n" in answer.writes
    assert [event["type"] for event in answer.events].count("response.in_progress") == 1
    assert text_of(answer.events[-1]["response"]) == "It is decided."


def test_white_space_keeps_a_quiet_json_answer_open(desk, monkeypatch):
    monkeypatch.setattr("conversations.asgi.responses.endpoint.SILENCE", 0.5)

    async def wait():
        async with desk.asking({"model": MODEL, "input": "hold"}) as asking:
            await asking.writes(1)
            stand_in.RELEASED.set()
            return await asking.answer()

    answer = desk.run(wait)

    assert answer.writes[0] == b"\n"
    assert answer.json["status"] == "completed"


def test_a_person_may_stop_the_run_of_a_response(desk):
    async def stop():
        async with desk.asking({"model": MODEL, "input": "hold", "stream": True}) as asking:
            await asking.writes(5)
            run = await desk.context.do(Run.objects.get)
            await desk.context.do(stop_and_rerun.cancel_run, SYSTEM, run.id)
            return await asking.answer()

    final = desk.run(stop).events[-1]

    assert (final["type"], final["response"]["error"]["code"]) == ("response.failed", "cancelled")


def test_a_lost_notification_costs_a_second_and_nothing_else(desk, monkeypatch):
    monkeypatch.setattr("conversations.asgi.responses.follow_events.should_drop", lambda _: True)

    events = desk.stream("many 300")

    assert replayed(events) == events[-1]["response"]["output"]
    assert text_of(events[-1]["response"]) == "word " * 300


@pytest.mark.slow
def test_a_reader_that_falls_behind_reads_the_record(desk, monkeypatch):
    monkeypatch.setattr("conversations.asgi.responses.follow_events.MAX_EVENTS", 3)

    events = desk.stream("many 300")

    assert replayed(events) == events[-1]["response"]["output"]
    assert len(events) > 300


def test_a_server_that_stops_says_so(desk):
    async def stop():
        async with desk.asking({"model": MODEL, "input": "hold", "stream": True}) as asking:
            await asking.writes(5)
            asking.stopping.set()
            return await asking.answer()

    events = desk.run(stop).events

    kinds = [event["type"] for event in events]
    assert kinds.index("error") > kinds.index("response.in_progress")
    assert kinds[-1] == "response.failed"
    assert events[-1]["response"]["error"]["code"] == "server_stopping"


def test_rebuild_changes_nothing_of_responses(desk):
    first = desk.create("call rain {}", tools=[RAIN]).json["id"]
    for words in ("one", "two", "fail", "vanish"):
        desk.create(words, previous_response_id=first)
    rows = [list(model.objects.order_by("id").values()) for model in (Response, Conversation, Run)]

    list(rebuild())

    assert [list(model.objects.order_by("id").values()) for model in (Response, Conversation, Run)] == rows


@pytest.mark.slow
def test_many_at_once_each_get_their_own(desk):
    async def all_at_once():
        async def talk(n):
            async with desk.asking({"model": MODEL, "input": f"number {n}", "stream": bool(n % 2)}) as asking:
                return await asking.answer()

        return await asyncio.gather(*(talk(n) for n in range(24)))

    for n, answer in enumerate(desk.run(all_at_once)):
        final = answer.events[-1]["response"] if n % 2 else answer.json
        assert text_of(final) == f"You said: number {n}"
