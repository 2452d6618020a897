"""Route everything below `/api/v1/agui/`. The protocol's package is imported in a thread on the first request, because
that takes a fifth of a second."""

from __future__ import annotations

import asyncio

from conversations.asgi import route
from conversations.asgi.responses.shared import ResponsesContext
from conversations.core import url_converters
from conversations.core.errors import NotFound

PREFIX = "/api/v1/agui/"
ADDRESSES = (f"{PREFIX}agents/{{id}}", f"{PREFIX}conversations/{{id}}")


class AguiRoutes:
    """All routes of AG-UI."""

    def __init__(self, context: ResponsesContext) -> None:
        self._context = context
        self._endpoints: dict[str, route.Endpoint] = {}

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Serve one request; an error raised before anything was sent is returned with a status."""
        await route.guard(self._answer, scope, receive, send)

    async def _answer(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        endpoint = await self._endpoint(scope)
        await endpoint(scope, receive, send)

    async def _endpoint(self, scope: route.Scope) -> route.Endpoint:
        """Return the endpoint of a URL and store what the URL names in the scope."""
        kind, _, rest = url_converters.with_slashes(scope)["path"].removeprefix(PREFIX).partition("/")
        if kind not in ("agents", "conversations") or not rest or "/" in rest.rstrip("/"):
            raise NotFound(f"no such address; use {' or '.join(ADDRESSES)}")
        try:
            scope["named"] = url_converters.from_url(rest.rstrip("/"))
        except ValueError:
            raise NotFound(f"no such address; use {' or '.join(ADDRESSES)}") from None
        if not self._endpoints:
            self._endpoints = await asyncio.get_running_loop().run_in_executor(None, _endpoints, self._context)
        return self._endpoints[kind]


def _endpoints(context: ResponsesContext) -> dict[str, route.Endpoint]:
    from conversations.asgi.agui.run_endpoint import RunEndpoint
    from conversations.asgi.agui.thread_stream import ThreadStream

    return {"agents": RunEndpoint(context), "conversations": ThreadStream(context)}
