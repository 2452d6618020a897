"""How long a client waits for a response in which nothing happens: it is told what for, and has a bound."""

import asyncio
import threading
import time
from contextlib import ExitStack

import openai
import pytest
from django.conf import settings
from django.test import override_settings

from conversations.asgi import route
from conversations.asgi.responses.shared import in_thread_if_large
from conversations.events.log.records import Stored
from conversations.models import Response, Run
from conversations.runs.approvals import decide
from tests.support import stand_in
from tests.support.cast import cast
from tests.support.live import until
from tests.support.responses_served import served_desk
from tests.support.stand_in import MODEL

pytestmark = pytest.mark.django_db(transaction=True)
WAITS = {"reason": "waiting_for_approval"}


def bound(seconds):
    return override_settings(CONFIG=settings.CONFIG.model_copy(update={"response_wait_s": seconds}))


@pytest.fixture
def served(transactional_db):
    with served_desk() as desk:
        yield desk


@pytest.fixture
def client_of(served):
    """Make official clients of a timeout in seconds, closed at the end."""
    with ExitStack() as opened:

        def make(timeout):
            arguments = {"base_url": served.url, "api_key": served.desk.token, "max_retries": 0, "timeout": timeout}
            return opened.enter_context(openai.OpenAI(**arguments))

        yield make


def approve(response):
    decide.decide(cast()["approver"], f"ask-{response}"[:64], "approve")


@pytest.mark.slow
def test_a_stock_client_is_answered_within_its_own_timeout_and_goes_on_by_id(served, client_of):
    client = client_of(8)
    began = time.monotonic()

    waiting = client.responses.create(model=MODEL, input="ask")

    assert time.monotonic() - began < 16
    assert (waiting.status, waiting.incomplete_details.to_dict()) == ("in_progress", WAITS)
    approve(waiting.id)
    done = until(lambda: (response := client.responses.retrieve(waiting.id)).status == "completed" and response)
    assert done.output_text == "It is decided."


@pytest.mark.slow
def test_a_stock_stream_is_told_what_it_waits_for_and_that_it_goes_on(served, client_of):
    client, kinds, waiting = client_of(20), [], {}
    with client.responses.stream(model=MODEL, input="ask") as stream:
        for event in stream:
            kinds.append(event.type)
            if event.type == "switchboard:response.waiting":
                waiting = event.to_dict()
                approve(Response.objects.get().id)
        final = stream.get_final_response()

    response = Response.objects.select_related("conversation").get()
    assert waiting["reason"] == "approval"
    assert waiting["approvals"] == [{"id": f"ask-{response.id}", "tool": "file", "call_id": "c1"}]
    assert (waiting["conversation_id"], waiting["run_id"]) == (response.conversation.key, response.run)
    assert kinds.index("switchboard:response.waiting") < kinds.index("switchboard:response.resumed")
    assert final.output_text == "It is decided."


def test_a_stream_in_which_nothing_happens_ends_incomplete_and_goes_on_by_id(desk):
    with bound(0.5):
        events = desk.stream("ask")

    final = events[-1]
    assert (final["type"], final["response"]["incomplete_details"]) == ("response.incomplete", WAITS)
    numbers = [event["sequence_number"] for event in events]
    assert numbers == [*range(len(events) - 1), len(events) - 2]  # the end is in no record: it repeats the last number
    response = final["response"]["id"]
    assert desk.get(f"responses/{response}").json["status"] == "in_progress"
    approve(response)
    until(lambda: desk.get(f"responses/{response}").json["status"] == "completed")
    again = desk.get(f"responses/{response}?stream=true&starting_after={final['sequence_number']}").events
    assert again[0]["type"] == "switchboard:response.resumed"
    assert again[-1]["type"] == "response.completed"
    assert [event["sequence_number"] for event in again] == list(range(numbers[-1] + 1, numbers[-1] + 1 + len(again)))


def test_a_socket_in_which_nothing_happens_takes_the_next_request(desk):
    async def talk():
        async with desk.socket() as wire:
            wire.create("ask", metadata={"conversation_id": "a"})
            first = await wire.turn()
            wire.create("hello", metadata={"conversation_id": "b"})
            return first, await wire.turn()

    with bound(0.5):
        first, second = desk.run(talk)

    assert (first[-1]["type"], second[-1]["type"]) == ("response.incomplete", "response.completed")


def test_who_waits_for_their_turn_is_told_so(desk):
    where = {"metadata": {"conversation_id": "busy"}}
    desk.create("hold", background=True, **where)
    until(lambda: Run.objects.filter(status="running").exists())

    with bound(0.5):
        answer = desk.create("next", **where).json

    assert (answer["status"], answer["incomplete_details"]) == ("queued", {"reason": "waiting_for_its_turn"})
    stand_in.RELEASED.set()
    until(lambda: desk.get(f"responses/{answer['id']}").json["status"] == "completed")


@pytest.mark.slow
def test_the_bound_counts_from_the_last_event(desk):
    with bound(1.5):
        assert desk.create("many 300").json["status"] == "completed"


@pytest.mark.parametrize("timeout", ["", "none", "-1", "nan", "inf", "1e9", "9" * 400, "٣"])
def test_a_wrong_timeout_of_a_client_is_passed_over(desk, timeout):
    from conversations.asgi.responses.progress import patience_of

    scope = {"headers": [(b"x-stainless-read-timeout", timeout.encode("utf-8"))]}

    assert patience_of(scope) == settings.CONFIG.response_wait_s


def test_large_events_are_read_off_the_loop():
    def event(size):
        return Stored("c", 1, "output", 0, "agent:A", None, None, None, "x" * size)

    async def threads():
        here = threading.get_ident()
        return [await in_thread_if_large([event(size)], threading.get_ident) == here for size in (10, route.LARGE)]

    assert asyncio.run(threads()) == [True, False]
