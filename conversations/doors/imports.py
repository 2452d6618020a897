"""`POST /api/v1/import`: a file's conversations, streamed in as lines (`recordings.wire`), visible whole or not at all.

A raw ASGI route: the body may be as large as it likes, it is stored in chunks while it comes, and the client is slowed
down to what the disk takes. Live writers go on between two chunks.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec
from django.db import connection

from conversations import principals
from conversations.doors import http
from conversations.doors.bearers import Bearers
from conversations.envelopes import MAX_BYTES
from conversations.errors import Invalid, MethodNotAllowed, SwitchboardError, TooLarge
from conversations.principals import Principal
from conversations.recordings.intake import Intake
from conversations.recordings.wire import Imported
from conversations.threads import DatabaseThreads

MAX_LINE = MAX_BYTES + 4096  # bytes: a payload and what is around it


class ImportDoor:
    """The route. Whoever may publish may import; what comes in is `import:NAME` all the same."""

    def __init__(self, bearers: Bearers) -> None:
        self._bearers = bearers

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Answer 200 `{"items": [{conversation_id, events, messages, tool_calls, errors}]}` once all is visible.

        Whatever is refused, and a request whose connection breaks, leaves nothing. A client that is still sending gets
        the refusal too: the server passes over the rest of the body.
        """
        try:
            if scope["method"] != "POST":
                raise MethodNotAllowed(["POST"])
            principal = await self._bearers.require(scope, "publish")
            items = await _import(principals.of_import(principal.name), receive)
        except SwitchboardError as error:
            await http.refuse(send, error)
        else:
            await http.answer(send, 200, msgspec.json.encode({"items": items}))


async def _import(principal: Principal, receive: http.Receive) -> list[Imported]:
    """Store what comes, in a thread of its own (and so over a connection of its own)."""
    loop = asyncio.get_running_loop()
    thread = DatabaseThreads("import")
    intake = Intake(principal)
    try:
        async for lines in _lines(receive):
            await loop.run_in_executor(thread, intake.take, lines)
        return await loop.run_in_executor(thread, intake.finish)
    except BaseException:
        await asyncio.shield(loop.run_in_executor(thread, intake.discard))
        raise
    finally:
        thread.submit(_close)
        thread.shutdown(wait=False)


async def _lines(receive: http.Receive) -> AsyncIterator[list[bytes]]:
    """Cut the body into lines as it comes. Raises `Invalid` when the client left, `TooLarge` for a line."""
    rest, has_more = b"", True
    while has_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Invalid("the request ended before its body")
        has_more = message.get("more_body", False)
        *lines, rest = (rest + message.get("body", b"")).split(b"\n")
        if len(rest) > MAX_LINE:
            raise TooLarge(f"a line of an import has at most {MAX_LINE:,} bytes")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _close() -> None:
    connection.close()
