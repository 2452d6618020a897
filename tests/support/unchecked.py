"""Events whose payload nobody holds against the schema of its type: what outsiders and older versions write."""

import json
from typing import Any

from conversations.core.principals import SYSTEM, Principal
from conversations.events import log
from conversations.events.log.records import NewEvent
from conversations.events.payload import parse


def unchecked(
    key: str, payload: dict[str, Any], principal: Principal = SYSTEM, *, topic: str = "", bus_id: str | None = None
) -> NewEvent:
    """Make an event of a conversation from any payload."""
    return from_text(topic or f"stream:{key}", json.dumps({**payload, "conversation_id": key}), principal, bus_id)


def from_text(topic: str, body: str, principal: Principal = SYSTEM, bus_id: str | None = None) -> NewEvent:
    """Make an event of a bus message, as its text arrived."""
    return log.from_bus(topic, bus_id, body, parse(body.encode()), principal)
