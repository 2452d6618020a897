"""`GET /healthz`: this process lives. `GET /readyz`: it can take and send, or which part cannot and why."""

import json
import re

from conversations.asgi import route
from conversations.core.secret_masking import mask
from conversations.core.status import OK
from conversations.realtime.readiness import HINTS, Readiness, not_ready
from conversations.realtime.server import ServerRuntime

_ADDRESS = re.compile(
    r"""\('[^']*', \d+\)|"[^"]*"|(?:[\w.-]+|\[[\da-f:]+\]):\d{2,5}\b|\b\d+(?:\.\d+){3}\b|://\S+""", re.IGNORECASE
)


class HealthEndpoint:
    """Both routes, bound to one server runtime. Open to everybody: a proxy asks."""

    def __init__(self, runtime: ServerRuntime) -> None:
        self._readiness = Readiness(runtime)

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Answer 200, or for `/readyz` 503: `{"ok", "not_ready": [part…], "degraded": [part…], "parts": {part: why}}`.

        A dead layer only makes the others' news a second old, so it is `degraded` and no reason for 503.
        """
        if scope["path"] == "/healthz":
            await route.answer(send, 200, b'{"ok": true}')
            return
        parts = {name: unaddressed(mask(state)) for name, state in (await self._readiness.parts()).items()}
        missing = not_ready(parts)
        degraded = [name for name in HINTS if parts.get(name, OK) != OK]
        body = {"ok": not missing, "not_ready": missing, "degraded": degraded, "parts": parts}
        await route.answer(send, 503 if missing else 200, json.dumps(body).encode())


def unaddressed(text: str) -> str:
    """Take out addresses and quoted names: who may not sign in need not know where things are; the log has them."""
    return _ADDRESS.sub("…", text)
