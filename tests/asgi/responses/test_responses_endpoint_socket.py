"""The websocket of `/v1/responses`: one response at a time, states of its own, and an end."""

import threading

import pytest

from conversations.access.accounts import tokens
from conversations.asgi.responses import parse_request
from conversations.core.principals import SYSTEM
from conversations.models import Conversation, Response
from tests.support import open_responses, stand_in
from tests.support.open_responses import needs_document

pytestmark = pytest.mark.django_db(transaction=True)
DONE = "response.completed"


def on_socket(desk, talk, **headers):
    async def held():
        async with desk.socket(**headers) as wire:
            return await talk(wire)

    return desk.run(held)


def final(events):
    assert events[-1]["type"] == DONE, events[-1]
    return events[-1]["response"]


def code(events):
    (error,) = events
    assert error["type"] == "error"
    return error["status"], error["error"]["code"], error["error"]["param"]


@needs_document
def test_a_response_over_a_socket_has_the_same_events(desk):
    async def talk(wire):
        frames = []
        for words in ("hello", "call rain {}", "think", "refuse", "fail"):
            wire.create(words)
            frames.append(await wire.turn())
        wire.say("{}")
        return frames, await wire.turn()

    turns, error = on_socket(desk, talk)

    for events in turns:
        for event in events:
            open_responses.check_event(event)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert events[0]["type"] == "response.created"
    open_responses.check("WebSocketErrorEvent", error[0])


def test_what_is_not_stored_goes_on_on_its_own_socket_only(desk):
    async def talk(wire):
        wire.create("one", store=False)
        first = final(await wire.turn())
        wire.create("two", store=False, previous_response_id=first["id"])
        return final(await wire.turn())

    async def elsewhere(wire):
        wire.create("three", previous_response_id=second["id"])
        return await wire.turn()

    second = on_socket(desk, talk)

    assert code(on_socket(desk, elsewhere)) == (400, "previous_response_not_found", "previous_response_id")
    assert desk.create("four", previous_response_id=second["id"]).status == 400
    assert Conversation.objects.count() == 1
    assert len(set(Response.objects.values_list("socket", flat=True))) == 1


def test_what_is_stored_goes_on_anywhere(desk):
    async def talk(wire):
        wire.create("two", previous_response_id=first["id"])
        return final(await wire.turn())

    first = desk.create("one").json
    second = on_socket(desk, talk)

    assert desk.create("three", previous_response_id=second["id"]).status == 200


@pytest.mark.parametrize("trouble", [{"model": "nobody"}, {"temperature": 9}, {"input": "fail"}])
def test_a_continuation_that_fails_forgets_what_it_named(desk, trouble):
    async def talk(wire):
        wire.create("one", store=False)
        first = final(await wire.turn())
        wire.say(
            {"type": "response.create", "model": "Stand-in", "input": "x", "previous_response_id": first["id"]}
            | trouble
        )
        await wire.turn()
        wire.create("again", previous_response_id=first["id"])
        return await wire.turn()

    assert code(on_socket(desk, talk))[:2] == (400, "previous_response_not_found")


def test_wrong_frames_are_errors_and_the_socket_goes_on(desk):
    async def talk(wire):
        wrong = ["{", "[]", "x", {"type": "response.cancel"}, {"model": "Stand-in"}, "\ud800"]
        for frame in wrong:
            wire.say(frame)
            error = await wire.turn()
            assert code(error)[0] == 400, frame
        for field, value in (("stream", True), ("background", False), ("stream_options", {})):
            wire.create("x", **{field: value})
            assert code(await wire.turn())[2] == field
        wire.create("still here")
        return await wire.turn()

    assert final(on_socket(desk, talk))["status"] == "completed"


def test_requests_of_one_socket_are_answered_one_after_the_other(desk):
    async def talk(wire):
        wire.create("hold")
        wire.create("second")
        while (await wire.event())["type"] != "response.output_text.delta":
            pass
        running = await desk.context.do(Response.objects.count)
        for _ in range(8):
            wire.create("more")
        refused = await wire.event()
        stand_in.RELEASED.set()
        await wire.turn()
        return running, refused, final(await wire.turn())

    running, refused, second = on_socket(desk, talk)

    assert running == 1
    assert (refused["status"], refused["error"]["type"]) == (429, "too_many_requests")
    assert second["output"][0]["content"][0]["text"] == "You said: second"


def test_a_frame_is_read_in_a_thread_and_not_in_the_loop(desk, monkeypatch):
    readers, read = [], parse_request.value_of

    def noting(body):
        readers.append(threading.current_thread().name)
        return read(body)

    async def talk(wire):
        wire.create("x" * 100_000)
        wire.say("{")
        return final(await wire.turn()), code(await wire.turn())

    monkeypatch.setattr(parse_request, "value_of", noting)
    _, refused = on_socket(desk, talk)

    assert refused[0] == 400
    assert [name.partition("_")[0] for name in readers] == ["asking", "asking"]


def test_a_socket_needs_a_bearer_with_the_right_and_no_origin(desk):
    viewer = tokens.make_token(SYSTEM, "viewer", "viewer")

    async def talk(wire):
        return await wire.next(), await wire.next()

    async def accepted(wire):
        return (await wire.next())["type"]

    for headers, status in (
        ({"cookie": "sessionid=x", "origin": "http://127.0.0.1:8000"}, 401),
        ({"authorization": "Bearer sb_nobody"}, 401),
        ({"authorization": f"Bearer {viewer}"}, 403),
    ):
        start, _ = on_socket(desk, talk, **headers)
        assert (start["type"], start["status"]) == ("websocket.http.response.start", status)
    for origin in ({}, {"origin": "https://elsewhere.example"}):
        assert on_socket(desk, accepted, authorization=f"Bearer {desk.token}", **origin) == "websocket.accept"


def test_a_socket_that_lost_its_right_hears_nothing_more(desk):
    async def talk(wire):
        desk.runtime.socket_registry.start()
        wire.create("hold")
        while (await wire.event())["type"] != "response.output_text.delta":
            pass
        await desk.context.do(tokens.revoke_token, SYSTEM, "asker-operator")
        message = await wire.next()
        stand_in.RELEASED.set()
        await desk.runtime.socket_registry.stop()
        return message

    assert on_socket(desk, talk) == {"type": "websocket.close", "code": 4403}


def test_a_socket_is_closed_after_an_hour(desk, monkeypatch):
    monkeypatch.setattr("conversations.asgi.responses.websocket.MAX_AGE", 0.2)

    async def talk(wire):
        return [await wire.event(), await wire.next()]

    error, closed = on_socket(desk, talk)

    assert error["error"]["code"] == "websocket_connection_limit_reached"
    assert closed == {"type": "websocket.close", "code": 1001}
    assert not desk.runtime.socket_registry.responses


def test_a_server_that_stops_says_so_on_the_socket(desk):
    async def talk(wire):
        wire.create("hold")
        while (await wire.event())["type"] != "response.output_text.delta":
            pass
        desk.runtime.state = "stopping"
        return await wire.turn()

    assert code(on_socket(desk, talk))[:2] == (503, "server_stopping")
