"""A page of a conversation whose id is erased goes to its new address, also if others use the old id again."""

import asyncio
import json
import uuid

import pytest

from conversations.access.accounts import tokens
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.events.log import hash_chain
from conversations.models import Conversation
from conversations.redaction import erase_id
from tests.asgi.test_socket_bounds import closed, opened, with_engine

pytestmark = pytest.mark.django_db(transaction=True)


def say(key, count):
    for _ in range(count):
        log.append([log.from_internal(key, {"event": "operator.note", "id": str(uuid.uuid4()), "text": "so"}, SYSTEM)])


def first_frame(secret, topic, **place):
    """Return the first frame that answers a subscribe, and whether the epoch is another one then."""

    async def work(engine):
        socket, epoch = await opened(engine, secret), engine.hub.epoch
        request = {"op": "subscribe", "topic": topic} | place
        await socket.send_input({"type": "websocket.receive", "text": json.dumps(request)})
        frame = json.loads((await socket.receive_output(5))["text"])
        await closed(socket)
        return frame, engine.hub.epoch != epoch

    return asyncio.run(with_engine(work))


@pytest.mark.parametrize("events", [0, 1, 6])
def test_a_page_goes_to_the_new_address_though_its_old_id_is_used_again(team, events):
    say("ada@example.com", 3)
    new_id = hash_chain.erased_key(Conversation.objects.get(key="ada@example.com").key_digest)
    erase_id.erase_id(team["admin"], "ada@example.com", "asked for")
    say("ada@example.com", events)
    secret = tokens.make_token(SYSTEM, "reader", "admin")

    frame, is_new_epoch = first_frame(secret, "stream:ada@example.com", after=3, erased_id=new_id)

    assert frame == {"t": "moved", "topic": "stream:ada@example.com", "to": new_id}
    assert not is_new_epoch
    assert first_frame(secret, f"stream:{new_id}", after=3, erased_id=new_id)[0]["t"] != "moved"
