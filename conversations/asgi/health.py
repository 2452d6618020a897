"""`GET /healthz`: this process is alive. `GET /readyz`: it can accept and send, or which part cannot and why."""

import json

from conversations.asgi import route
from conversations.core.secret_masking import mask, unaddressed
from conversations.core.status import OK
from conversations.realtime.readiness import HINTS, Readiness, not_ready
from conversations.realtime.server_runtime import ServerRuntime


class HealthEndpoint:
    """Both routes, bound to one server runtime. Open to everybody, because proxies call them."""

    def __init__(self, runtime: ServerRuntime) -> None:
        self._readiness = Readiness(runtime)

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Return 200, or for `/readyz` 503: `{"ok", "not_ready": [part…], "degraded": [part…], "parts": {part: why}}`.

        Without the channel layer, events of other processes are only up to a second late, so the node is `degraded`,
        which is not a reason for a 503.
        """
        if scope["path"] == "/healthz":
            await route.answer(send, 200, b'{"ok": true}')
            return
        parts = {name: unaddressed(mask(state)) for name, state in (await self._readiness.parts()).items()}
        missing = not_ready(parts)
        degraded = [name for name in HINTS if parts.get(name, OK) != OK]
        body = {"ok": not missing, "not_ready": missing, "degraded": degraded, "parts": parts}
        await route.answer(send, 503 if missing else 200, json.dumps(body).encode())
