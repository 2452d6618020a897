"""A JSON request that ends before its run: no client takes the answer for one after which to send it again."""

import pytest

from conversations.access.authentication import RECONNECT
from conversations.models import Response, Run
from tests.support import stand_in
from tests.support.live import until
from tests.support.response_desk import desk_open
from tests.support.stand_in import MODEL

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk():
    with desk_open() as opened:
        yield opened


def answer_after(desk, interrupt):
    """Return the answer to a request that is interrupted while its run is held; the run goes on."""

    async def talk():
        async with desk.asking({"model": MODEL, "input": "hold"}) as asking:
            await desk.context.do(until, Run.objects.exists)
            interrupt(asking)
            return await asking.answer()

    answer = desk.run(talk)
    stand_in.RELEASED.set()
    until(lambda: Response.objects.get().status == "completed", what="the run to go on without its reader")
    return answer


def test_a_server_that_stops_answers_with_the_response_in_progress(desk):
    answer = answer_after(desk, lambda asking: asking.stopping.set())

    assert (answer.status, answer.json["status"]) == (200, "in_progress")
    assert answer.json["incomplete_details"] == {"reason": "server_stopping"}
    assert (answer.json["id"], answer.headers["x-conversation-id"]) == (Response.objects.get().id,) * 2


def test_an_error_of_ours_answers_with_the_response_in_progress(desk, monkeypatch, caplog):
    def broken(*given):
        raise ZeroDivisionError

    monkeypatch.setattr("conversations.asgi.responses.endpoint._ending", broken)

    answer = answer_after(desk, lambda asking: None)

    assert (answer.status, answer.json["status"]) == (200, "in_progress")
    assert answer.json["incomplete_details"] == {"reason": "server_error"}
    assert "ZeroDivisionError" in caplog.text


def test_a_reader_that_is_sent_away_is_told_not_to_send_it_again(desk):
    def dismiss(_):
        for reader in desk.runtime.socket_registry.responses:
            reader.dismiss(RECONNECT)

    answer = answer_after(desk, dismiss)

    assert (answer.status, answer.json["error"]["code"]) == (503, "told_no_more")
    assert (answer.headers["x-should-retry"], answer.headers.get("retry-after")) == ("false", None)
    assert answer.headers["x-conversation-id"] == Response.objects.get().id
