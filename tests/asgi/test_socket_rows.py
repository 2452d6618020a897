"""Rows of state topics have their HTML only where a page requests it."""

import asyncio
import json

import pytest

from conversations.access.accounts import tokens
from conversations.core.principals import SYSTEM
from conversations.events import log
from tests.asgi.test_socket_bounds import closed, opened, with_engine

pytestmark = pytest.mark.django_db(transaction=True)


def test_conversations_are_drawn_for_those_who_request_it():
    log.append([log.from_internal("c", {"event": "operator.note", "id": "n", "text": "so"}, SYSTEM)])
    secret = tokens.make_token(SYSTEM, "reader", "viewer")

    async def work(engine):
        socket, answers = await opened(engine, secret), []
        for render in (None, "html"):
            request = {"op": "subscribe", "topic": "fleet", "render": render}
            await socket.send_input({"type": "websocket.receive", "text": json.dumps(request)})
            answers.append(json.loads((await socket.receive_output(60))["text"]))
        await closed(socket)
        return answers

    (plain,), (drawn,) = (answer["rows"] for answer in asyncio.run(with_engine(work)))

    assert plain["key"] == drawn["key"] == "c"
    assert drawn.keys() - plain.keys() == {"html"}
