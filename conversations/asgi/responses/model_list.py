"""`GET /v1/models` and `/v1/models/{id}`: the names that `model` of a request may have."""

from typing import Any

import msgspec

from conversations.asgi import route
from conversations.asgi.responses.shared import ResponsesContext
from conversations.core.errors import NotFound
from conversations.events.log import response_queries as log_asked
from conversations.events.log.response_queries import Model
from conversations.runs.responses import create

VIEW = "view"
METHODS = ("GET", "HEAD")


class ModelsEndpoint:
    """Both routes: the list, and a single model."""

    def __init__(self, context: ResponsesContext) -> None:
        self._context = context

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Handle one request."""
        await self._context.admit(scope, METHODS, VIEW)
        payload = await self._context.do(_model, scope["named"]) if scope["named"] else await self._context.do(_all)
        await route.answer(send, 200, msgspec.json.encode(payload))


def _all() -> dict[str, Any]:
    """List the agents that can be addressed by name, and the configured model."""
    return {
        "object": "list",
        "data": [_shown(model) for model in log_asked.available_models(create.DEMO) if model.is_listed],
    }


def _model(name: str) -> dict[str, Any]:
    """Describe one model, or an agent that is reached only by handoffs."""
    for model in log_asked.available_models(create.DEMO):
        if model.name == name:
            return _shown(model)
    raise NotFound(f"no agent or model {name[:80]!r} is available", code="model_not_found", field="model")


def _shown(model: Model) -> dict[str, Any]:
    """Return a model in the API's form. `created` is 0, because it is unknown since when a model has existed."""
    return {"id": model.name, "object": "model", "created": 0, "owned_by": model.team}
