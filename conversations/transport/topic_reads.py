"""Read topics from the record, bodies as their original text (§3.2). Called by the topic endpoint, in a thread.

A position is an event number on `stream:*`, else a post's row id. An id that was never given out raises
UnknownPosition: nothing is repeated or skipped.
"""

from typing import Any

from django.db import connection

from conversations.access.permissions import Reach
from conversations.core.errors import Conflict, UnknownPosition
from conversations.events import log

READ_SIZE = 4 << 20  # characters of one read, or one message

_PLACE_OF_EVENT = """SELECT e.seq FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id
WHERE c.key=%s AND e.event_id=%s"""
_PLACE_OF_PART = "SELECT event_seq FROM conversations_post WHERE topic=%s AND bus_id=%s AND event_seq IS NOT NULL"
_PLACE_OF_POST = "SELECT id FROM conversations_post WHERE topic=%s AND bus_id=%s"
_BEFORE_NEWEST = "SELECT p.id FROM conversations_post p WHERE p.topic=%s {} ORDER BY p.id DESC LIMIT 1 OFFSET %s"
_POSTS = """SELECT p.bus_id,COALESCE(p.body,e.body) FROM conversations_post p LEFT JOIN conversations_event e
ON e.conversation_id=p.conversation_id AND e.seq=p.event_seq WHERE p.topic=%s AND p.id>%s {} ORDER BY p.id LIMIT %s"""
_OF_KEY = "COALESCE((SELECT id FROM conversations_conversation WHERE key=%s),-1)"
_FILED: dict[Reach, str] = {  # by the payload: conversation X and agent X share chat:X
    "conversation": f"AND p.conversation_id={_OF_KEY}",
    "inbox": f"AND p.conversation_id<>{_OF_KEY}",
}


def check_readable(topic: str) -> None:
    """Raise Conflict for a topic that is not read here: with PostgreSQL only `stream:*` is."""
    if not topic.startswith("stream:") and connection.vendor != "sqlite":
        raise Conflict(
            "on this server, topics other than stream: must be read from Redis, under the key of the same name",
            code="read_from_redis",
            field="topic",
        )


def place_of(topic: str, last_id: str) -> int:
    """Return the position of an id that `after` or a publish returned."""
    prefix, _, key = topic.partition(":")
    if prefix != "stream":
        position = _first(_PLACE_OF_POST, topic, last_id)
    elif last_id.isascii() and last_id.isdigit() and len(last_id) < 19:
        position = int(last_id) if int(last_id) <= log.head(key) else None
    else:
        position = _first(_PLACE_OF_EVENT, key, last_id) or _first(_PLACE_OF_PART, topic, last_id)
    if position is None:
        raise UnknownPosition(f"there is no message {last_id[:80]!r} on {topic!r}", field="last_id")
    return position


def place_before_newest(topic: str, limit: int, reach: Reach = "all") -> int:
    """Return the position before the newest `limit` messages that `reach` includes; with 0 the end."""
    prefix, _, key = topic.partition(":")
    if prefix == "stream":
        return max(0, log.head(key) - limit)
    filed, of_key = _filed(reach, key)
    return _first(_BEFORE_NEWEST.format(filed), topic, *of_key, limit) or 0


def after(topic: str, position: int, limit: int, reach: Reach = "all") -> list[tuple[str, str]]:
    """Return ids and bodies after a position, in order; fewer once they exceed 4 MiB, none only at the end. `reach`
    limits them to what is, or is not, filed in the conversation of the topic's name."""
    prefix, _, key = topic.partition(":")
    if prefix == "stream":
        return [(str(event.seq), event.body) for event in log.read_after(key, position, limit)]
    messages, size = [], 0
    with connection.cursor() as cursor:
        filed, of_key = _filed(reach, key)
        cursor.execute(_POSTS.format(filed), [topic, position, *of_key, limit])
        for bus_id, body in cursor:
            messages.append((bus_id, body))
            size += len(body)
            if size > READ_SIZE:
                break
    return messages


def _filed(reach: Reach, key: str) -> tuple[str, list[str]]:
    """Return the condition of a reach, and its values."""
    return (_FILED[reach], [key]) if reach in _FILED else ("", [])


def _first(sql: str, *values: Any) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        row = cursor.fetchone()
    return int(row[0]) if row else None
