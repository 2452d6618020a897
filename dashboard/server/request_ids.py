"""Give every HTTP request an id: the X-Request-ID it carries, if valid, else a new one. It is returned to the client
and is on every log line and error page of the request. Called by `asgi` in front of endpoints and pages."""

import random
import re
from collections.abc import Awaitable
from typing import Any

from conversations.asgi.route import Endpoint, Receive, Scope, Send
from conversations.core import log_format

HEADER = b"x-request-id"
_FIT = re.compile(rb"[\w.:-]{1,64}", re.ASCII)


def of_scope(scope: Scope) -> str:
    """Return the id of a request: its X-Request-ID if valid, else a new one."""
    for name, value in scope["headers"]:
        if name == HEADER and _FIT.fullmatch(value):
            return str(value.decode())
    return f"{random.getrandbits(48):012x}"  # os.urandom would give up the GIL on every request


async def with_request_id(app: Endpoint, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one HTTP request with its id set for logging and returned in a header."""
    number = scope["request_id"] = of_scope(scope)

    def answer(message: dict[str, Any]) -> Awaitable[None]:  # no coroutine of its own: this is passed by every message
        if message["type"] == "http.response.start":
            headers = [pair for pair in message.get("headers", ()) if pair[0].lower() != HEADER]
            message = {**message, "headers": [*headers, (HEADER, number.encode())]}
        return send(message)

    with log_format.log_context(request=number):
        await app(scope, receive, answer)
