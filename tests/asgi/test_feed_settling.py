"""The event feed while a long transaction of PostgreSQL is under way: a page is bounded in time, and never passes over
what may still be committed."""

import asyncio
import json
from types import SimpleNamespace

import psycopg
import pytest
from django.db import connection

from conversations.access import authentication
from conversations.access.accounts import tokens
from conversations.asgi import event_feed
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.realtime.server_runtime import ServerRuntime
from tests.support.databases import IS_POSTGRESQL

pytestmark = [
    pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite has one writer at a time"),
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def feed(monkeypatch):
    monkeypatch.setattr(event_feed, "START_S", 0.3)
    caller = authentication.caller_from_token(tokens.make_token(SYSTEM, "reader", "viewer"))

    async def known(*_):
        return caller

    made = event_feed.EventFeedEndpoint(ServerRuntime(), SimpleNamespace(caller=known))
    yield made
    made._readers.submit(lambda: connection.close()).result()
    made._readers.shutdown(wait=True)


@pytest.fixture
def long_transaction():
    """Another program's, which has written something."""
    parameters = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    with psycopg.connect(**{name: parameters[name] for name in names if name in parameters}) as other:
        other.execute("SELECT pg_current_xact_id()")
        yield other
        other.rollback()


def say(text):
    log.append([log.from_internal("a", {"event": "log", "text": text}, SYSTEM)])


def page(feed):
    """Return the status and the texts of a page from the beginning."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "query_string": b"after=0", "headers": []}
    asyncio.run(feed(scope, None, send))
    body = json.loads(b"".join(message.get("body", b"") for message in sent))
    return sent[0]["status"], [item["body"]["text"] for item in body.get("items", ())]


def test_a_page_is_refused_while_nothing_is_known_to_be_settled(feed, long_transaction):
    say("one")

    assert page(feed) == (503, [])
    long_transaction.rollback()
    assert page(feed) == (200, ["one"])


def test_a_page_has_what_was_settled_before(feed, request):
    say("one")
    assert page(feed) == (200, ["one"])
    long_transaction = request.getfixturevalue("long_transaction")
    say("two")

    assert page(feed) == (200, ["one"])
    long_transaction.rollback()
    assert page(feed) == (200, ["one", "two"])
