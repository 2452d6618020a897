"""Revoked is over, within a second and without a notification: long polls, imports and exports that are under way."""

import asyncio
import http.client
import json
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.http import HttpRequest, StreamingHttpResponse
from django.test import override_settings
from django.urls import path

from conversations.access import authentication
from conversations.access.accounts import tokens
from conversations.access.audit.listing.filters import AuditFilters
from conversations.access.list_export import ListExport
from conversations.asgi import import_upload, token_auth
from conversations.asgi.topics import TopicEndpoint, TopicRequest
from conversations.core import principals
from conversations.core.db_threads import with_connection
from conversations.core.errors import NotAllowed, NotSignedIn
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.import_export.staged_import import StagedImport
from conversations.models import Conversation
from conversations.realtime.socket_registry import GuardedRequest, SocketRegistry
from dashboard import urls
from dashboard.server.django_handler import PageHandler
from tests.support import toolcalls
from tests.support.cast import client_of, person
from tests.support.doors import Answer, Caller, encode, message_payload
from tests.support.live import Server, until
from tests.support.revocation import LAW, holder, pause_until, revoke, wait_for_use


@pytest.mark.parametrize("topic", ["stream:poll-{}", "chat:poll-{}"])
def test_a_long_poll_of_a_revoked_token_ends_and_is_told_nothing(server, callers, topic):
    name = topic.partition(":")[0]
    topic, answers = topic.format(name), []
    poller = holder(server, f"poller-{name}")

    def poll() -> None:
        answers.append(poller.get(f"/api/v1/topics/{topic}/messages?block_ms=10000"))

    thread = threading.Thread(target=poll)
    thread.start()
    wait_for_use(server, f"poller-{name}")
    pause_until(revoke(server, f"poller-{name}") + LAW)
    assert callers["admin"].publish(topic, message_payload(f"poll-{name}", "secret")).status == 201
    thread.join(60)

    assert [(answer.status, answer.body["error"]["code"]) for answer in answers] == [(401, "token_revoked")]


def test_a_long_poll_of_a_revoked_token_ends_though_nothing_comes(server):
    poller, answers = holder(server, "poller-quiet"), []

    def poll() -> None:
        answers.append(poller.get("/api/v1/topics/stream:poll-nothing/messages?block_ms=30000"))
        answers.append(time.monotonic())

    thread = threading.Thread(target=poll)
    began = time.monotonic()
    thread.start()
    wait_for_use(server, "poller-quiet")
    revoke(server, "poller-quiet")
    thread.join(60)

    assert (answers[0].status, answers[0].body["error"]["code"]) == (401, "token_revoked")
    assert answers[1] - began < 30, "it waited to its own end"


class Import:
    """An import whose lines are sent one by one."""

    def __init__(self, caller: Caller, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", caller.server.port, timeout=60)
        self._connection.putrequest("POST", "/api/v1/import")
        self._connection.putheader("Authorization", f"Bearer {caller.token}")
        self._connection.putheader("Transfer-Encoding", "chunked")
        self._connection.endheaders()
        self.key = key
        self.send({"conversation": key})

    def send(self, line: dict[str, object]) -> None:
        text = encode(line) + b"\n"
        self._connection.send(b"%x\r\n%s\r\n" % (len(text), text))

    def event(self, n: int, words: str = "x") -> None:
        payload = {"event": "log", "conversation_id": self.key, "message": words, "n": n}
        self.send({"id": f"e{n}", "payload": payload})

    def answer(self) -> Answer:
        response = self._connection.getresponse()
        try:
            return Answer(response.status, dict(response.headers), json.loads(response.read()))
        finally:
            self._connection.close()


def staged(server: Server) -> int:
    """Count the conversations that an import is still writing."""
    with sqlite3.connect(server.data_dir / "switchboard.sqlite3", timeout=60) as database:
        (count,) = database.execute("SELECT COUNT(*) FROM conversations_conversation WHERE is_staged").fetchone()
        return int(count)


def test_an_import_whose_token_is_revoked_meanwhile_ends_at_once_and_leaves_nothing(server, callers):
    upload = Import(holder(server, "importer"), "half-way")
    for n in range(6):
        upload.event(n, "x" * 900_000)
    until(lambda: staged(server), what="the import to begin")
    revoked_at = revoke(server, "importer")

    answer = upload.answer()  # no line was sent since

    assert (answer.status, answer.body["error"]["code"]) == (401, "token_revoked")
    assert time.monotonic() - revoked_at < 5 * LAW
    assert callers["admin"].get("/api/v1/conversations/half-way").status == 404
    until(lambda: not staged(server), what="what was staged to be removed")


@pytest.mark.django_db(transaction=True)
def test_an_import_is_not_published_once_its_token_is_revoked():
    """Whatever the watch saw: the importer's right is looked up in the transaction that makes it all visible."""
    caller = authentication.caller_from_token(tokens.make_token(SYSTEM, "importer", "admin"))
    intake = StagedImport(principals.import_principal("importer"), lambda: authentication.require_still(caller))
    payload = {"event": "log", "conversation_id": "late"}
    intake.receive([encode({"conversation": "late"}), encode({"id": "1", "payload": payload}), encode({"end": 1})])
    tokens.revoke_token(SYSTEM, "importer")

    with pytest.raises(NotSignedIn, match="revoked"):
        intake.finish()

    assert not Conversation.objects.visible().exists()
    intake.discard()
    assert not Conversation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_import_route_asks_again_when_all_has_come() -> None:
    caller = authentication.caller_from_token(tokens.make_token(SYSTEM, "importer", "admin"))
    assert caller is not None
    payload = {"event": "log", "conversation_id": "late"}
    lines = ({"conversation": "late"}, {"id": "1", "payload": payload}, {"end": 1})

    async def receive() -> dict[str, Any]:
        await asyncio.to_thread(with_connection, tokens.revoke_token, SYSTEM, "importer")
        return {"type": "http.request", "body": b"\n".join(map(encode, lines))}

    with pytest.raises(NotSignedIn, match="revoked"):
        asyncio.run(import_upload._import(GuardedRequest(caller), receive))

    assert not Conversation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_read_that_waits_for_a_late_look_ends_when_that_sends_its_reader_away():
    caller = authentication.caller_from_token(tokens.make_token(SYSTEM, "reader", "viewer"))
    log.append([toolcalls.event("c", {"event": "log"})])

    async def read():
        watch, has_read = SocketRegistry(), asyncio.Event()
        watch.send_gate.passed(time.monotonic() - 60)
        opened = watch.send_gate.wait_until_open

        async def wait():
            has_read.set()
            await opened()

        watch.send_gate.wait_until_open = wait
        door, gone = TopicEndpoint(token_auth.TokenAuthenticator(), watch), asyncio.get_running_loop().create_future()
        reading = asyncio.ensure_future(door._guarded(caller, TopicRequest("stream:c", "0", 10, 1), "all", gone, {}))
        await asyncio.wait_for(has_read.wait(), 30)
        for reader in watch.guarded:
            reader.dismiss(authentication.NOT_ALLOWED)
        watch.send_gate.passed(time.monotonic())
        return await reading

    with pytest.raises(NotSignedIn):
        asyncio.run(read())


@pytest.mark.django_db(transaction=True)
def test_a_token_is_looked_up_again_within_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    secret, now = tokens.make_token(SYSTEM, "reader", "viewer"), [100.0]
    scope = {"headers": [(b"authorization", f"Bearer {secret}".encode())], "client": ("10.0.0.1", 1)}
    monkeypatch.setattr(token_auth, "time", SimpleNamespace(monotonic=lambda: now[0]))

    async def read_twice() -> None:
        authenticator = token_auth.TokenAuthenticator()
        await authenticator.caller(scope, "view")
        await asyncio.to_thread(with_connection, tokens.revoke_token, SYSTEM, "reader")
        now[0] += LAW
        await authenticator.caller(scope, "view")

    with pytest.raises(NotSignedIn):
        asyncio.run(read_twice())
    assert now == [100.0 + LAW]


@pytest.mark.django_db(transaction=True)
def test_a_list_as_a_file_ends_where_its_reader_loses_the_right() -> None:
    """Whoever stays signed in with another role gets no further page."""
    auditor = person("audrey", "auditor")
    numbers = ListExport("numbers", "export", ["n"], lambda _: lambda after: ([{"n": after}], 1))

    async def read() -> list[bytes]:
        pieces = numbers.stream(AuditFilters(), "jsonl", principals.user_principal("audrey"))
        first = [await anext(pieces), await anext(pieces)]
        await asyncio.to_thread(with_connection, auditor.roles.update, name="viewer")
        with pytest.raises(NotAllowed):
            await anext(pieces)
        return first

    assert asyncio.run(read()) == [b"", b'{"n": null}\n']


async def endless() -> AsyncIterator[bytes]:
    """Return a file without an end."""
    while True:
        yield b"x" * 1000
        await asyncio.sleep(0.02)


def export(request: HttpRequest) -> StreamingHttpResponse:
    """Send that file."""
    return StreamingHttpResponse(endless())


class Routes:
    """The product's routes and an export."""

    urlpatterns = [*urls.urlpatterns, path("api/v1/endless", export)]
    handler400, handler403 = urls.handler400, urls.handler403
    handler404, handler500 = urls.handler404, urls.handler500


async def read_export(headers: list[tuple[bytes, bytes]], end_it) -> tuple[float, bool]:
    """Read until the file ends; return how many seconds after `end_it` the last part came, and whether it was whole."""
    watch = SocketRegistry()
    watch.start()
    pages = PageHandler(watch)
    messages, came, hung_up, is_whole = [{"type": "http.request", "body": b"", "more_body": False}], [], [], []
    has_begun = asyncio.Event()

    async def receive():
        return messages.pop() if messages else await asyncio.Event().wait()

    async def send(message):
        came.append(time.monotonic())
        if len(came) == 5:
            has_begun.set()
        is_whole.append(message["type"] == "http.response.body" and not message.get("more_body"))

    scope = {
        "type": "http", "method": "GET", "path": "/api/v1/endless", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8000"), *headers], "server": ("127.0.0.1", 8000),
        "extensions": {"http.hang_up": lambda: hung_up.append(True)},
    }  # fmt: skip
    reading = asyncio.create_task(pages(scope, receive, send))
    await has_begun.wait()
    await asyncio.to_thread(end_it)
    ended_at = time.monotonic()
    await asyncio.wait_for(reading, 60)
    await watch.stop()
    assert hung_up
    return came[-1] - ended_at, any(is_whole)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["a token", "a session", "a session beside another scheme"])
def test_an_export_ends_when_the_right_to_it_does(how, monkeypatch):
    monkeypatch.setattr("conversations.access.action_context.commit_listeners.notify_revoked", lambda: None)
    if how == "a token":
        headers = [(b"authorization", f"Bearer {tokens.make_token(SYSTEM, 'reader', 'auditor')}".encode())]
        end_it = lambda: tokens.revoke_token(SYSTEM, "reader")  # noqa: E731
    else:
        cookies = client_of(person("audrey", "auditor")).cookies
        headers = [(b"cookie", cookies.output(attrs=[], header="", sep=";").strip().encode())]
        headers += [(b"authorization", b"Basic x")] if how.endswith("scheme") else []
        end_it = lambda: Session.objects.all().delete()  # noqa: E731

    with override_settings(ROOT_URLCONF=Routes):
        late, is_whole = asyncio.run(read_export(headers, end_it))

    assert late <= LAW
    assert not is_whole


@pytest.mark.django_db(transaction=True)
def test_a_session_that_ends_before_its_file_begins_gets_none_of_it(monkeypatch):
    client = client_of(person("audrey", "auditor"))

    def ended(request: HttpRequest) -> StreamingHttpResponse:
        Session.objects.all().delete()
        return export(request)

    monkeypatch.setattr(Routes, "urlpatterns", [*urls.urlpatterns, path("api/v1/ended", ended)])
    with override_settings(ROOT_URLCONF=Routes):
        answer = client.get("/api/v1/ended")

    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_revoked")
