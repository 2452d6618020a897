"""The names of the tools that model turns were offered, learned before turns are drawn. Called where rows are drawn."""

from collections.abc import Iterable

import msgspec

from conversations.fragments import offered
from conversations.log.events import Stored
from conversations.models import ToolSchema


class _Turn(msgspec.Struct):
    tools: object = None


def learn(events: Iterable[Stored]) -> None:
    """Look up the names that these turns need and that are not known yet; mostly there are none. Sync."""
    hashes = {one for event in events if event.kind == "model.turn" and event.run for one in _hashes(event.body)}
    wanted = offered.unknown(hashes)
    if wanted:
        offered.learn(dict(ToolSchema.objects.filter(hash__in=wanted).values_list("hash", "name")))


def _hashes(body: str) -> list[str]:
    try:
        return offered.hashes_of(msgspec.json.decode(body.encode("utf-8", "replace"), type=_Turn).tools)
    except msgspec.MsgspecError:
        return []
