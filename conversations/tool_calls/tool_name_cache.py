"""Cache the names of the tools that model turns were offered, before turns are drawn. Called where rows are drawn."""

from collections.abc import Iterable

import msgspec

from conversations.events.log.records import Stored
from conversations.models import ToolSchema
from conversations.rendering import offered_tools


class _Turn(msgspec.Struct):
    tools: object = None


_decoder = msgspec.json.Decoder(_Turn)


def load_names(events: Iterable[Stored]) -> None:
    """Load the names these turns need and the cache lacks; mostly none. Synchronous."""
    hashes = {
        tool_hash for event in events if event.kind == "model.turn" and event.run for tool_hash in _hashes(event.body)
    }
    missing = offered_tools.unknown(hashes)
    if missing:
        offered_tools.learn(dict(ToolSchema.objects.filter(hash__in=missing).values_list("hash", "name")))


def _hashes(body: str) -> list[str]:
    try:
        return offered_tools.hashes_of(_decoder.decode(body.encode("utf-8", "replace")).tools)
    except msgspec.MsgspecError:
        return []
