"""What a remote agent tells of its tools, steps and state, as claims in the record (law I). Sync."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from conversations.core.errors import TooLarge
from conversations.core.ids import new_id
from conversations.core.principals import AGUI
from conversations.core.secret_masking import mask_json
from conversations.core.write_transaction import write_transaction
from conversations.events import log, payload
from conversations.models import Event

STATE = "agui.state_snapshot"
Body = dict[str, Any]


def store(conversation: str, bodies: Sequence[Body]) -> None:
    """Append what the agent reported; what is too large for an event is left out."""
    events = []
    for body in bodies:
        text = json.dumps(mask_json({"id": new_id(), "conversation_id": conversation, **body}))
        try:
            payload.check_depth(text.encode())
            parsed = payload.parse(text.encode())
        except TooLarge:
            continue
        if len(text) <= payload.MAX_BYTES:
            made = log.from_bus(f"stream:{conversation}", None, text, parsed, AGUI)
            events.append(made._replace(starts_no_run=True))
    if events:
        with write_transaction():
            log.append(events)


def latest_state(conversation: str, agent: str) -> Any:
    """Return the state that an agent left behind in a conversation, as it reported it; None where it reported none."""
    snapshots = Event.objects.filter(conversation__key=conversation, kind=STATE, principal=str(AGUI)).order_by("-seq")
    for body in snapshots.values_list("body", flat=True)[:5]:
        fields = json.loads(body)
        if fields.get("agent") == agent:
            return fields.get("snapshot")
    return None
