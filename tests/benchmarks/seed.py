"""Fill a database quickly, through `log.append` itself."""

import json
from collections.abc import Iterator

from conversations.core import principals
from conversations.events import log, payload
from conversations.events.log.records import NewEvent

ROBOT = principals.token_principal("bench")
WORDS = "agent tool search file error result plan step query index user token model run call output " * 3


def message(key: str, i: int) -> NewEvent:
    """Make a message of about 380 bytes; every tenth event is a tool call's start or end."""
    if i % 10 < 2:
        body = {"event": "tool_step", "name": f"tool{i % 7}", "args": {"i": i}, "tool_call_id": f"{key}-{i // 10}"}
        body |= {"status": "start"} if i % 10 == 0 else {"status": "success", "result_summary": "ok"}
        topic = f"stream:{key}"
    else:
        body = {"type": "message", "id": f"{key}-{i:09d}", "sender": f"agent:A{i % 7}", "recipient": "user"}
        body |= {"content": WORDS}
        topic = f"chat:{key}"
    text = json.dumps({"conversation_id": key, "created_at": "2026-11-21T21:00:00Z", **body})
    return log.from_bus(topic, None, text, payload.parse(text.encode()), ROBOT)


def fill(events: Iterator[NewEvent], *, size: int = 1000) -> None:
    """Append all, `size` a transaction."""
    batch: list[NewEvent] = []
    for event in events:
        batch.append(event)
        if len(batch) == size:
            log.append(batch)
            batch = []
    if batch:
        log.append(batch)
