"""`GET /healthz` and `/readyz`, without a database query: alive, and ready to take and to send."""

import json

from conversations.doors import http
from conversations.engine import Engine


class HealthDoor:
    """Both routes, bound to one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        """Answer 200, or for `/readyz` 503 naming the part that is not ready."""
        missing = []
        if scope["path"] == "/readyz":
            if not self._engine.is_ready:
                missing.append("engine")
            elif not self._engine.writer.is_alive():
                missing.append("writer")
        status = 503 if missing else 200
        await http.answer(send, status, json.dumps({"ok": not missing, "not_ready": missing}).encode())
