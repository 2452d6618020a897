"""Tokens that come twice within one request."""

import json

import pytest

from conversations.access.authentication import Caller
from conversations.asgi import batch_publish
from conversations.core.principals import Principal
from conversations.events import log
from conversations.models import Event

pytestmark = pytest.mark.django_db

ROBOT = Caller(Principal("token", "robot"), frozenset({"operator"}))


def token(id_: str, text: str, index: int) -> bytes:
    payload = {"event": "token", "conversation_id": "c", "agent": "A", "text": text, "index": index}
    return json.dumps({"topic": "stream:c", "payload": payload, "id": id_}).encode()


def test_one_with_the_id_of_an_earlier_one_is_not_joined_to_it():
    lines = [token("t1", "re", 1), token("t2", "fu", 2), token("t1", "re", 3), token("t3", "nd", 4)]
    items, events = batch_publish.parse_batch(lines, ROBOT)

    stored = log.append(events)

    texts = [json.loads(body)["text"] for body in Event.objects.order_by("seq").values_list("body", flat=True)]
    assert "".join(texts) == "refund"
    assert [event.is_new for event in stored].count(True) == len(texts)
    assert len(items) == len(lines)
