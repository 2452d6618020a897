"""`POST /api/v1/import`: a file's conversations, streamed as lines (`import_export.import_lines`), made visible
completely or not at all.

A raw ASGI route: the body may be of any size; it is stored in chunks as it arrives, and the client is slowed down to
the speed of the disk. Other writers continue between two chunks.
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
from conversations.core.errors import Invalid, TooLarge
from conversations.events.payload import MAX_BYTES
from conversations.import_export.import_lines import ImportedConversation
from conversations.import_export.staged_import import StagedImport
from conversations.realtime.socket_registry import GuardedRequest, SocketRegistry

MAX_LINE = MAX_BYTES + 4096  # bytes: a payload and what is around it


class ImportEndpoint(route.Route):
    """The route. It requires the permission to publish; the principal of the events is `import:NAME`."""

    methods = ("POST",)

    def __init__(self, authenticator: TokenAuthenticator, socket_registry: SocketRegistry) -> None:
        self._authenticator, self._socket_registry = authenticator, socket_registry

    async def handle(self, scope: route.Scope, receive: route.Receive) -> tuple[int, bytes]:
        """Return 200 `{"items": [{conversation_id, events, messages, tool_calls, errors}]}` once everything is visible.

        A rejected or interrupted request leaves nothing behind. A client that is still sending gets the error too: the
        server skips the rest of the body.
        """
        caller = await self._authenticator.caller(scope, "publish")
        if caller.agent:
            raise await self._authenticator.refuse(scope, "publish", caller)
        with self._socket_registry.reading(caller) as importer, self._authenticator.holding(scope):
            return 200, msgspec.json.encode({"items": await _import(importer, receive)})


async def _import(importer: GuardedRequest, receive: route.Receive) -> list[ImportedConversation]:
    """Store the lines as they arrive, in a separate thread (and so over a separate connection).

    The importer's permission is checked throughout, and once more in the transaction that makes everything visible.
    """
    thread = DatabaseThreads("import")
    caller = importer.caller
    intake = StagedImport(
        principals.import_principal(caller.principal.name), partial(authentication.require_still, caller)
    )
    try:
        async for lines in _lines(importer, receive):
            await thread.run(intake.receive, lines)
        return await thread.run(intake.finish)
    except BaseException:
        await asyncio.shield(thread.run(intake.discard))
        raise
    finally:
        thread.submit(_close)
        thread.shutdown(wait=False)


async def _lines(importer: GuardedRequest, receive: route.Receive) -> AsyncIterator[list[bytes]]:
    """Split the body into lines as it arrives. Raises `Invalid` if the client disconnects, `TooLarge` for a line,
    `NotSignedIn` once the importer's token is revoked."""
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
