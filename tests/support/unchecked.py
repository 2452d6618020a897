"""Events whose payload nobody holds against the schema of its type: what outsiders and older versions write."""

import json
from typing import Any

from conversations.core.principals import Principal
from conversations.events import log
from conversations.events.log.records import NewEvent
from conversations.events.payload import parse


def unchecked(key: str, payload: dict[str, Any], principal: Principal) -> NewEvent:
    """Make an event of a conversation from any payload."""
    body = json.dumps({**payload, "conversation_id": key})
    return log.from_bus(f"stream:{key}", None, body, parse(body.encode()), principal)
