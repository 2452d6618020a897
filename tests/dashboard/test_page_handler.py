"""Django's pages under ASGI: one hop into a thread, bounded bodies, a connection per thread."""

import asyncio
import json
import sqlite3
import sys
import threading
import time

import pytest
from asgiref.sync import SyncToAsync
from django.db import OperationalError, connection
from django.http import HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path

from conversations.core.held_bodies import FREE, held_bodies
from conversations.events import log
from conversations.realtime.socket_registry import SocketRegistry
from dashboard import urls
from dashboard.server.django_handler import MAX_BODY, PageHandler
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db(transaction=True)

seen = []


def look(request):
    """Note the thread and its connection, and use both."""
    person_count = type(request.user).__name__
    connection.ensure_connection()
    seen.append((threading.current_thread().name, id(connection.connection)))
    return HttpResponse(f"{person_count} {len(request.body)}")


given = []


async def pieces():
    """Return a file without an end."""
    while True:
        given.append(len(given))
        yield b"x" * 1000
        await asyncio.sleep(0)


def stream(request):
    """Send that file."""
    return StreamingHttpResponse(pieces())


def write(request):
    """Write, and say when that could not be."""
    try:
        with log.write_transaction():
            return HttpResponse("written")
    except OperationalError as error:
        return HttpResponse(str(error), status=503)


class Routes:
    """The product's routes and a page that notes where it runs."""

    urlpatterns = [
        *urls.urlpatterns,
        path("api/v1/look", look),
        path("api/v1/stream", stream),
        path("api/v1/write", write),
    ]
    handler400, handler403 = urls.handler400, urls.handler403
    handler404, handler500 = urls.handler404, urls.handler500


@pytest.fixture
def handler():
    """Return a handler with one thread, whose connection is closed at the end."""
    with override_settings(ROOT_URLCONF=Routes):
        pages = PageHandler(SocketRegistry())
        pages._pool._max_workers = 1
        seen.clear()
        yield pages
        pages._pool.submit(lambda: connection.close()).result()
        pages._pool.shutdown()


async def ask(handler, path="/api/v1/look", method="GET", chunks=(b"",), cookie="", hang_up=False, more_headers=()):
    """Make one request as a server would; return what was sent."""
    messages = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    messages[-1]["more_body"] = False
    if hang_up:
        messages[-1] = {"type": "http.disconnect"}
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:8000"), (b"cookie", cookie.encode()), *more_headers]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
    await handler(scope | {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8000), "scheme": "http"}, receive, send)
    return sent


def answer_of(sent):
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


@pytest.fixture
def cookie():
    return f"switchboard_session={client_of(person('vera', 'viewer')).cookies['switchboard_session'].value}"


def test_a_request_makes_one_hop_and_it_is_ours(handler, cookie, monkeypatch):
    hops = []
    monkeypatch.setattr(SyncToAsync, "__call__", lambda self, *a, **k: hops.append(self.func))

    status, body = answer_of(asyncio.run(ask(handler, cookie=cookie)))

    assert (status, body, hops) == (200, b"SimpleLazyObject 0", [])
    assert seen[0][0].startswith("pages")


@pytest.mark.sqlite("PostgreSQL's connections go back to their pool after each request")
def test_a_thread_keeps_its_connection(handler, cookie):
    for _ in range(3):
        asyncio.run(ask(handler, cookie=cookie))

    assert len(set(seen)) == 1


def test_the_headers_are_on_the_answer(handler):
    (start, *_) = asyncio.run(ask(handler, path="/sign-in/"))

    names = {name.lower() for name, _ in start["headers"]}
    assert {b"content-security-policy", b"x-request-id", b"cache-control"} <= names


def test_a_body_too_large_is_refused_before_it_is_read_whole(handler):
    chunks = [b"x" * (1 << 20)] * 20

    status, _ = answer_of(asyncio.run(ask(handler, method="POST", chunks=chunks)))

    assert status == 413
    assert len(chunks) << 20 > MAX_BODY
    assert seen == []


@pytest.mark.parametrize(
    ("path", "more_headers", "is_json"),
    [("/api/v1/look", (), True), ("/page/", ((b"x-requested-with", b"fetch"),), True), ("/page/", (), False)],
)
def test_a_body_that_is_not_read_is_refused_in_the_callers_format(handler, path, more_headers, is_json, monkeypatch):
    monkeypatch.setattr(held_bodies, "limit", 0)
    chunks = (b"x" * (FREE + 1), b"")

    sent = asyncio.run(ask(handler, path, "POST", chunks, more_headers=more_headers))

    status, body = answer_of(sent)
    headers = {name.lower(): value for name, value in sent[0]["headers"]}
    assert (status, headers[b"retry-after"]) == (429, b"1")
    if is_json:
        assert headers[b"content-type"] == b"application/json"
        assert json.loads(body)["error"]["code"] == "busy"
    else:
        assert headers[b"content-type"] == b"text/plain"
        assert b"send again later" in body


def test_who_hangs_up_early_gets_no_answer(handler):
    assert asyncio.run(ask(handler, method="POST", chunks=(b"a", b"b"), hang_up=True)) == []


def test_an_unknown_page_is_404(handler):
    assert answer_of(asyncio.run(ask(handler, path="/nowhere/")))[0] == 404


def test_a_file_ends_where_its_reader_leaves(handler):
    cookie = client_of(person("vera", "viewer")).cookies.output(attrs=[], header="", sep=";").strip()
    given.clear()

    async def read_some():
        messages, left = [{"type": "http.request", "body": b"", "more_body": False}], asyncio.Event()

        async def receive():
            if messages:
                return messages.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            if len(given) == 5:
                left.set()

        headers = [(b"host", b"127.0.0.1:8000"), (b"cookie", cookie.encode())]
        scope = {"type": "http", "method": "GET", "path": "/api/v1/stream", "query_string": b"", "headers": headers}
        await asyncio.wait_for(handler(scope | {"server": ("127.0.0.1", 8000)}, receive, send), 60)

    asyncio.run(read_some())

    assert 5 <= len(given) < 20


@pytest.mark.sqlite("PostgreSQL locks rows")
def test_the_wait_for_a_thread_and_for_the_file_are_bounded_together(handler, cookie, monkeypatch):
    monkeypatch.setattr(sys.modules["conversations.core.write_transaction"], "PATIENCE", 3)
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, uri=True)
    other.execute("BEGIN IMMEDIATE")

    async def all_at_once():
        return await asyncio.gather(*[ask(handler, "/api/v1/write", cookie=cookie) for _ in range(3)])

    began = time.monotonic()
    answers = asyncio.run(all_at_once())
    took = time.monotonic() - began
    other.close()

    assert [answer[0]["status"] for answer in answers] == [503] * 3
    assert took < 2 * 3, "whoever waits for the one thread begins to wait for the file only then"
