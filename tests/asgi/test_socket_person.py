"""A socket of a page that was rendered for one person follows nothing as another."""

import asyncio
import json

import pytest
from asgiref.testing import ApplicationCommunicator
from django.conf import settings

from conversations.asgi.socket_consumer import OTHER_PERSON
from tests.asgi.test_socket_bounds import consumer_of, with_engine
from tests.support.cast import cast, client_of

pytestmark = pytest.mark.django_db(transaction=True)


async def answer_to(engine, session, person):
    """Follow the approvals as a page of this person's does; return the first answer."""
    cookie = f"{settings.SESSION_COOKIE_NAME}={session}".encode()
    headers = [(b"cookie", cookie), (b"host", b"127.0.0.1:8000"), (b"origin", b"http://127.0.0.1:8000")]
    scope = {"type": "websocket", "path": "/ws/", "scheme": "ws", "headers": headers, "client": ("10.0.0.1", 1)}
    socket = ApplicationCommunicator(consumer_of(engine), scope)
    await socket.send_input({"type": "websocket.connect"})
    assert (await socket.receive_output(5))["type"] == "websocket.accept"
    frame = {"op": "subscribe", "topic": "approvals", "person": person}
    await socket.send_input({"type": "websocket.receive", "text": json.dumps(frame)})
    answer = await socket.receive_output(5)
    await socket.send_input({"type": "websocket.disconnect", "code": 1000})
    await socket.wait(60)
    return answer


@pytest.mark.parametrize("name", ["otto", "ada"])
def test_it_is_closed_with_a_code_of_its_own(name):
    session = client_of(cast()["operator"]).cookies[settings.SESSION_COOKIE_NAME].value

    answer = asyncio.run(with_engine(lambda engine: answer_to(engine, session, name)))

    if name == "otto":
        assert json.loads(answer["text"])["t"] == "rows"
    else:
        assert (answer["type"], answer["code"]) == ("websocket.close", OTHER_PERSON)
