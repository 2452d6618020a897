"""Follow the server's event feed (`GET /api/v1/events`) across interruptions, without losing or repeating events."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from switchboard.api import connection_to
from switchboard.errors import Refused, Unreachable

QUIET_S = 45.0  # the server says something every 15 s; who hears nothing for so long connects again
MAX_WAIT_S = 5.0  # seconds between attempts
UNKNOWN_TOKEN = 401
LATER = ("restarting", "unavailable")  # codes of ends after which the same request may work again
_log = logging.getLogger("switchboard")


class FeedMessage(NamedTuple):
    """`event` with an event, or `gap` if some may be missing; `id` is the position to continue from."""

    name: str
    id: str
    data: dict[str, Any]


def follow(
    url: str,
    token: str,
    *,
    conversation: str = "",
    after: str | None = None,
    renew: Callable[[], tuple[str, str]] | None = None,
) -> Iterator[FeedMessage]:
    """Yield events after a position, by default from now on. Reconnects automatically.

    `renew` returns the address and another token when the server does not know this one or is gone: of a server that
    gives out tokens which end with it. It raises `Unreachable` while there is none. Raises `Refused` if the token may
    not read, or no longer.
    """
    place, pause_s = after, 0.0
    while True:
        try:
            for message in _connected(url, token, conversation, place):
                place, pause_s = message.id or place, 0.0
                if message.name == "end" and message.data.get("code") not in LATER:
                    raise Refused(str(message.data.get("message")), code=str(message.data.get("code")))
                if message.name in ("event", "gap"):
                    yield message
        except Unreachable as error:
            _log.warning("the feed of events is interrupted, retrying: %s", error)
            url, token = _renewed(renew, url, token)
        except Refused as refusal:
            if renew is None or refusal.status != UNKNOWN_TOKEN:
                raise
            url, token = _renewed(renew, url, token)
        pause_s = min(MAX_WAIT_S, max(0.1, pause_s * 2))
        time.sleep(pause_s * random.uniform(0.5, 1))


def _renewed(renew: Callable[[], tuple[str, str]] | None, url: str, token: str) -> tuple[str, str]:
    """Return the address and the token to go on with."""
    with contextlib.suppress(Unreachable):
        return (url, token) if renew is None else renew()
    return url, token


def _connected(url: str, token: str, conversation: str, after: str | None) -> Iterator[FeedMessage]:
    """Yield the events of one connection. Raises `Unreachable` when it breaks, `Refused` if the server rejects it."""
    fields = {"conversation": conversation} if conversation else {}
    query = urlencode(fields | ({"after": after} if after is not None else {}))
    connection = connection_to(url, QUIET_S)
    try:
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        connection.request("GET", f"{urlsplit(url).path.rstrip('/')}/api/v1/events?{query}", headers=headers)
        answer = connection.getresponse()
        if answer.status != 200:
            _refuse(url, answer)
        if not (answer.getheader("Content-Type") or "").startswith("text/event-stream"):
            raise Unreachable(f"{url} responded with 200, but not as Switchboard does")
        yield from _messages(answer)
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{url} does not respond: {error or type(error).__name__}") from error
    finally:
        connection.close()


def _messages(answer: http.client.HTTPResponse) -> Iterator[FeedMessage]:
    name, id, lines = "event", "", list[str]()
    while raw := answer.readline():
        line = raw.decode().rstrip("\n")
        field, _, value = line.partition(": ")
        if field == "data":
            lines.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            id = value
        elif not line and (lines or id):
            yield FeedMessage(name if lines else "place", id, json.loads("\n".join(lines) or "{}"))
            name, id, lines = "event", "", []


def _refuse(url: str, answer: http.client.HTTPResponse) -> None:
    try:
        body = json.loads(answer.read())
    except (ValueError, RecursionError):
        body = None
    given = body.get("error") if isinstance(body, dict) else None
    error = given if isinstance(given, dict) else {}  # a proxy's may have any form
    message = str(error.get("message") or f"{url} responded with {answer.status}")
    if 400 <= answer.status < 500 and answer.status not in (408, 425, 429):
        refusal = Refused(message, code=str(error.get("code", "invalid")))
        refusal.status = answer.status
        raise refusal
    raise Unreachable(message)
