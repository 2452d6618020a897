"""Rows as the recorder and other processes leave them, for tests of the ops pages."""

import hashlib
import json
import time
from typing import Any

from conversations.models import Node, Post, Quarantine, RedisPosition

KEPT = 64 << 10  # bytes


def quarantine(raw: bytes | dict[str, Any], source: str = "chat:desk", **more: Any) -> Quarantine:
    """Put a message into quarantine, as the recorder would."""
    whole = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    fields = {"at": time.time_ns() // 1000, "reason": "must be the conversation's id", "size": len(whole)}
    fields["entry"] = f"{time.time_ns() // 1_000_000}-{Quarantine.objects.count()}"
    digest = hashlib.sha256(whole).hexdigest()
    return Quarantine.objects.create(source=source, raw=whole[:KEPT], digest=digest, **(fields | more))


def node(name: str, kind: str, age_s: float = 0, version: str = "1.2.3", **facts: Any) -> Node:
    """Let a process have told of itself."""
    now = time.time_ns() // 1000
    seen, started = now - int(age_s * 1e6), now - 3_600_000_000
    row = {"kind": kind, "version": version, "started_at": started, "seen_at": seen, "facts": json.dumps(facts)}
    return Node.objects.create(name=name, **row)


def stream(name: str, at_ms: int = 1_750_000_000_000, read: int = 1) -> RedisPosition:
    """Let a Redis stream have been read."""
    return RedisPosition.objects.create(stream=name, last_id=f"{at_ms}-0", entries_read=read, found_at=at_ms * 1000)


def post(topic: str, body: Any, **more: Any) -> Post:
    """Keep a message that names no conversation."""
    fields = {"bus_id": f"bus-{Post.objects.count()}"} | more
    return Post.objects.create(topic=topic, body=json.dumps(body), **fields)
