"""`GET /checkpoint`: the newest signed head of the record (C2SP tlog-checkpoint); `/checkpoint/keys`: its public keys.

Open to everybody: anyone who keeps a checkpoint can prove later that something was changed. It reveals how often the
record changed, but nothing of its contents.
"""

import asyncio

from conversations.asgi import route
from conversations.core.errors import NotFound, SwitchboardError
from conversations.evidence import checkpoints, state

KEYS = "/checkpoint/keys"
PATHS = ("/checkpoint", KEYS)


class CheckpointEndpoint:
    """Both routes."""

    async def __call__(self, scope: route.Scope, receive: route.Receive, send: route.Send) -> None:
        """Return the note, or the verifier keys, one per line; 404 before the first checkpoint was signed."""
        try:
            text = await asyncio.to_thread(_keys if scope["path"] == KEYS else _note)
        except SwitchboardError as error:
            await route.refuse(send, error)
        else:
            await route.answer(send, 200, text, content_type=b"text/plain; charset=utf-8")


def _note() -> bytes:
    if text := state.note():
        return text.encode()
    raise NotFound("the record has not been signed yet")


def _keys() -> bytes:
    return "".join(f"{key}\n" for key in checkpoints.verifier_keys()).encode()
