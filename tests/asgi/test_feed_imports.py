"""The event feed beside imports: one that is discarded is no restored database."""

import asyncio
import json
from types import SimpleNamespace

import pytest
from django.db import connection

from conversations.access import authentication
from conversations.access.accounts import tokens
from conversations.asgi import event_feed
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.events.log.import_staging import StagedBatch
from conversations.realtime.server_runtime import ServerRuntime

pytestmark = pytest.mark.django_db(transaction=True)
SAID = {"event": "log", "text": "a"}


@pytest.fixture
def feed():
    caller = authentication.caller_from_token(tokens.make_token(SYSTEM, "reader", "viewer"))

    async def known(*_):
        return caller

    made = event_feed.EventFeedEndpoint(ServerRuntime(), SimpleNamespace(caller=known))
    yield made
    made._readers.submit(lambda: connection.close()).result()
    made._readers.shutdown(wait=True)


def page(feed, after="0"):
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/api/v1/events", "headers": []}
    asyncio.run(feed(scope | {"query_string": f"after={after}".encode()}, None, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_cursor_from_before_an_import_was_discarded_stays_one(feed):
    log.append([log.from_internal("a", SAID, SYSTEM)])
    staged = StagedBatch()
    log.append([log.from_internal(staged.stage("imported"), SAID, SYSTEM)], chained_as=staged.chained_as)
    _, body = page(feed, page(feed)[1]["cursor"])
    staged.discard()

    status, beside = page(feed, body["cursor"])
    log.append([log.from_internal("a", SAID, SYSTEM)])
    _, later = page(feed, beside.get("cursor", "0"))

    assert (status, beside.get("items")) == (200, [])
    assert [item["seq"] for item in later["items"]] == [2]
