"""A server's memory of tokens, alone, and requests that carry one."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core.errors import NotSignedIn


@pytest.fixture
def authenticator() -> Iterator[TokenAuthenticator]:
    """What looks tokens up; its threads end with the test."""
    made = TokenAuthenticator()
    yield made
    for pool in (made._lookups, made._notes):
        pool.submit(lambda: connection.close()).result()  # the thread's own
        pool.shutdown()


def carrying(secret: str) -> dict[str, Any]:
    """Return the scope of a request with this token."""
    headers = [(b"authorization", f"Bearer {secret}".encode())]
    return {"type": "http", "headers": headers, "client": ("10.0.0.1", 1)}


def lets_in(authenticator: TokenAuthenticator, secret: str) -> bool:
    """Return whether a token lets its bearer publish."""
    try:
        asyncio.run(authenticator.caller(carrying(secret), "publish"))
    except NotSignedIn:
        return False
    return True
