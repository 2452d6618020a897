"""What a server gives to commands of its data directory is handed back by them, listed, and revoked one by one."""

import asyncio
import socket
import sys
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from conversations.access.accounts import command_tokens
from conversations.asgi.event_feed import EventFeedEndpoint
from conversations.core.db_threads import with_connection
from conversations.core.errors import NotFound, NotSignedIn
from conversations.core.principals import SYSTEM
from conversations.import_export.server_client import ServerClient
from conversations.management.commands import tail
from conversations.models import AuditEntry
from conversations.realtime.server_runtime import ServerRuntime
from conversations.realtime.socket_registry import SocketRegistry
from tests.support.authenticator import carrying, lets_in
from tests.support.doors import encode, message

pytestmark = pytest.mark.django_db(transaction=True)


def names():
    return sorted(token.name for token in command_tokens.live())


def test_each_is_revoked_alone_with_what_is_under_way(authenticator, monkeypatch):
    monkeypatch.setattr("conversations.access.action_context.commit_listeners.notify_revoked", lambda: None)
    loading, playing = authenticator.give("loading"), authenticator.give("playing")
    tokens = {token.name: token for token in command_tokens.live()}

    async def work():
        watch = SocketRegistry()
        watch.start()
        callers = [await authenticator.caller(carrying(secret), "publish") for secret in (loading, playing)]
        with (
            watch.reading(callers[0]) as ended,
            watch.reading(callers[1]) as goes_on,
            authenticator.holding(carrying(loading)),
        ):
            revoke = command_tokens.revoke_command_token
            await asyncio.to_thread(with_connection, revoke, SYSTEM, tokens["loading"].id)
            with pytest.raises(NotSignedIn, match="revoked"):
                await ended.unless_dismissed(asyncio.sleep(60))
            goes_on.check()
        await watch.stop()

    asyncio.run(work())

    assert (lets_in(authenticator, loading), lets_in(authenticator, playing)) == (False, True)
    entry = AuditEntry.objects.get(verb="revoke_command_token")
    assert (entry.target, entry.outcome) == ("import:loading", "done")
    with pytest.raises(NotFound):
        command_tokens.revoke_command_token(SYSTEM, tokens["loading"].id)


def test_those_in_use_are_listed_and_no_others(authenticator):
    begun = names()
    authenticator.give("unused")
    held, spent = authenticator.give("held"), authenticator.give("spent")
    with authenticator.holding(carrying(held)):
        for token in command_tokens.live():
            if token.name in ("held", "unused"):
                token.used_at = timezone.now() - timedelta(seconds=command_tokens.IDLE_S)
        authenticator.take_back(spent)

        assert names() == sorted([*begun, "held"])


def test_one_that_follows_the_feed_is_listed_and_revoked_after_hours_too(authenticator, monkeypatch):
    secret = authenticator.give("tail")
    (token,) = [token for token in command_tokens.live() if token.name == "tail"]
    feed, listed = EventFeedEndpoint(ServerRuntime(), authenticator), []

    async def follow_for_hours(*_):
        token.used_at = timezone.now() - timedelta(seconds=2 * command_tokens.IDLE_S)
        listed.extend(names())
        await asyncio.to_thread(with_connection, command_tokens.revoke_command_token, SYSTEM, token.id)

    monkeypatch.setattr(feed, "_follow", follow_for_hours)
    scope = carrying(secret) | {"method": "GET", "query_string": b""}
    scope["headers"] = [*scope["headers"], (b"accept", b"text/event-stream")]
    asyncio.run(feed(scope, None, None))

    assert "tail" in listed
    assert token.is_revoked


def test_the_page_lists_and_revokes_them(admin, authenticator):
    secret = authenticator.give("loading")
    (token,) = [token for token in command_tokens.live() if token.name == "loading"]

    assert "import:loading" in admin.get("/tokens/").content.decode()
    answer = admin.post("/tokens/revocations/", {"command": token.id})
    assert (answer.status_code, lets_in(authenticator, secret)) == (302, False)
    assert "import:loading" not in admin.get("/tokens/").content.decode()
    assert admin.post("/tokens/revocations/", {"command": token.id}).status_code == 404


def test_a_command_hands_its_own_back(server):
    with ServerClient.open(server.data_dir, "handed") as client:
        secret = client._token
        body = encode(message("stream:handed", {"event": "log", "conversation_id": "handed"}))
        assert server.request("POST", "/api/v1/publish", body, secret)[0] == 201

    assert server.request("POST", "/api/v1/publish", body, secret)[0] == 401
    assert server.request("DELETE", "/api/v1/door", None, secret)[0] == 401


def test_a_command_hands_its_own_back_on_a_connection_that_was_closed_meanwhile(server):
    with ServerClient.open(server.data_dir, "quiet") as client:
        secret = client._token
        client._connection.sock.shutdown(socket.SHUT_RDWR)  # as the server does after some seconds

    assert server.request("DELETE", "/api/v1/door", None, secret)[0] == 401


def test_tail_hands_its_own_back_however_it_ends(server, settings, monkeypatch):
    settings.DATA_DIR = server.data_dir
    monkeypatch.delenv("SWITCHBOARD_URL", raising=False)
    secrets, ends = [], iter([None, KeyboardInterrupt, BrokenPipeError])

    def follow(url, token, **_):
        secrets.append(token)
        assert server.request("GET", "/api/v1/topics/chat:tailed/messages", None, token)[0] == 200
        yield from ()
        if (end := next(ends)) is not None:
            raise end

    monkeypatch.setattr(tail, "follow", follow)
    monkeypatch.setattr(sys, "stdout", sys.stdout)  # gone once its reader is
    call_command("tail", "tailed")
    with pytest.raises(CommandError, match="stopped"):
        call_command("tail", "tailed")
    call_command("tail", "tailed")

    assert [server.request("DELETE", "/api/v1/door", None, secret)[0] for secret in secrets] == [401] * 3
