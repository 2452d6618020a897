"""Route everything below `/v1`. Unknown URLs and errors are also answered in the API's own error format, because its
clients read no HTML."""

from __future__ import annotations

from conversations.asgi import route
from conversations.asgi.responses.compact import CompactEndpoint
from conversations.asgi.responses.endpoint import ResponsesEndpoint
from conversations.asgi.responses.model_list import ModelsEndpoint
from conversations.asgi.responses.shared import ResponsesContext, refuse
from conversations.asgi.responses.stored_response import CancelEndpoint, InputItemsEndpoint, StoredResponseEndpoint
from conversations.core.errors import NotFound

PREFIX = "/v1/"
ADDRESSES = (
    "/v1/models",
    "/v1/models/{name}",
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/responses/{id}",
    "/v1/responses/{id}/cancel",
    "/v1/responses/{id}/input_items",
)


class ResponsesRoutes:
    """All routes of the API."""

    def __init__(self, context: ResponsesContext) -> None:
        responses = ResponsesEndpoint(context)
        self._endpoints: dict[str, route.Endpoint] = {
            "responses": responses,
            "responses/compact": CompactEndpoint(context),
        }
        self._of_response: dict[str, route.Endpoint] = {
            "": StoredResponseEndpoint(context, responses),
            "input_items": InputItemsEndpoint(context),
            "cancel": CancelEndpoint(context),
        }
        self._models = ModelsEndpoint(context)

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Serve one request; an internal error is a 500 in the API's format if nothing was sent yet."""
        await route.guard(self._route(scope), scope, receive, send, refuse)

    def _route(self, scope: route.Scope) -> route.Endpoint:
        """Return the endpoint of a URL and store what the URL names in the scope."""
        path = scope["path"].removeprefix(PREFIX)
        if endpoint := self._endpoints.get(path):
            return endpoint
        kind, _, rest = path.partition("/")
        if kind == "models":
            scope["named"] = rest
            return self._models
        name, _, verb = rest.partition("/")
        if kind == "responses" and name and (endpoint := self._of_response.get(verb)):
            scope["named"] = name
            return endpoint
        return _unknown


async def _unknown(scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
    where = f"{scope['method']} {scope['path']}"[:200].encode("utf-8", "replace").decode()
    await refuse(send, NotFound(f"{where} is not supported; use {', '.join(ADDRESSES)}", code="unknown_url"))
