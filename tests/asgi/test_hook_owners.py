"""Who may report on a session: the token that opened its conversation, though another one tried first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from conversations.access import permissions
from conversations.access.authentication import Caller
from conversations.asgi.coding_agent_hooks import HooksEndpoint
from conversations.core.db_threads import with_connection
from conversations.core.errors import Unavailable
from conversations.core.principals import Principal
from conversations.events import log
from conversations.events.log.records import NewEvent, Stored

PATH = "/api/v1/hooks/claude-code"
FIRST, SECOND = (Caller(Principal("token", name), permissions.ADMIN) for name in ("first", "second"))


class Writer:
    """Stores events, unless the database is away."""

    is_away = False

    async def store(self, events: Sequence[NewEvent]) -> list[Stored]:
        """Store them. Raises Unavailable."""
        if self.is_away:
            raise Unavailable("the database cannot answer right now")
        return await asyncio.to_thread(with_connection, log.append, events)


def post(endpoint: HooksEndpoint) -> int:
    """Post the beginning of a session; return the status."""
    body = json.dumps({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": "go on"}).encode()
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": PATH, "query_string": b"", "headers": []}
    asyncio.run(endpoint(scope, receive, send))
    return int(sent[0]["status"])


@pytest.mark.django_db(transaction=True)
def test_a_token_whose_first_hook_was_not_stored_does_not_own_the_session():
    writer, authenticator = Writer(), SimpleNamespace()
    runtime = SimpleNamespace(writer=writer)
    endpoint: Any = HooksEndpoint(runtime, authenticator)  # type: ignore[arg-type]  # what it uses of them

    def post_as(caller: Caller) -> int:
        async def authenticate(*_: object) -> Caller:
            return caller

        authenticator.caller = authenticate
        return post(endpoint)

    writer.is_away = True
    assert post_as(FIRST) == 503
    writer.is_away = False
    assert post_as(SECOND) == 200

    assert [post_as(FIRST), post_as(SECOND)] == [403, 200]
