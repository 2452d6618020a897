"""`POST /api/v1/import`: a file's conversations, streamed in as lines (`import_export.ndjson`), visible whole or not
at all.

A raw ASGI route: the body may be as large as it likes, it is stored in chunks while it comes, and the client is slowed
down to what the disk takes. Live writers go on between two chunks.
"""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import msgspec
from django.db import connection

from conversations.access import authentication
from conversations.asgi import route
from conversations.asgi.token_auth import TokenAuthenticator
from conversations.core import principals
from conversations.core.db_threads import DatabaseThreads
from conversations.core.errors import Invalid, MethodNotAllowed, SwitchboardError, TooLarge
from conversations.events.payload import MAX_BYTES
from conversations.import_export.ndjson import ImportedConversation
from conversations.import_export.staged_import import StagedImport
from conversations.realtime.session_guard import Reader, SocketRegistry

MAX_LINE = MAX_BYTES + 4096  # bytes: a payload and what is around it


class ImportEndpoint:
    """The route. Whoever may publish may import; what comes in is `import:NAME` all the same."""

    def __init__(self, bearers: TokenAuthenticator, watch: SocketRegistry) -> None:
        self._bearers, self._watch = bearers, watch

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Answer 200 `{"items": [{conversation_id, events, messages, tool_calls, errors}]}` once all is visible.

        Whatever is refused, and a request whose connection breaks, leaves nothing. A client that is still sending gets
        the refusal too: the server passes over the rest of the body.
        """
        try:
            if scope["method"] != "POST":
                raise MethodNotAllowed(["POST"])
            visitor = await self._bearers.visitor(scope, "publish")
            if visitor.agent:
                raise await self._bearers.refuse(scope, "publish", visitor)
            with self._watch.reading(visitor) as importer, self._bearers.holding(scope):
                items = await _import(importer, receive)
        except SwitchboardError as error:
            await route.refuse(send, error)
        else:
            await route.answer(send, 200, msgspec.json.encode({"items": items}))


async def _import(importer: Reader, receive: route.Receive) -> list[ImportedConversation]:
    """Store what comes, in a thread of its own (and so over a connection of its own).

    The importer's right is looked at while it lasts, and once more in the transaction that makes all of it visible.
    """
    thread = DatabaseThreads("import")
    visitor = importer.visitor
    intake = StagedImport(
        principals.import_principal(visitor.principal.name), partial(authentication.require_still, visitor)
    )
    try:
        async for lines in _lines(importer, receive):
            await thread.run(intake.take, lines)
        return await thread.run(intake.finish)
    except BaseException:
        await asyncio.shield(thread.run(intake.discard))
        raise
    finally:
        thread.submit(_close)
        thread.shutdown(wait=False)


async def _lines(importer: Reader, receive: route.Receive) -> AsyncIterator[list[bytes]]:
    """Cut the body into lines as it comes. Raises `Invalid` when the client left, `TooLarge` for a line, `NotSignedIn`
    once the importer is revoked."""
    rest, has_more = b"", True
    while has_more:
        message = await importer.unless_dismissed(receive())
        if message["type"] == "http.disconnect":
            raise Invalid("the request body is incomplete")
        has_more = message.get("more_body", False)
        *lines, rest = (rest + message.get("body", b"")).split(b"\n")
        if len(rest) > MAX_LINE:
            raise TooLarge(f"a line of an import must be at most {MAX_LINE:,} bytes")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _close() -> None:
    connection.close()
