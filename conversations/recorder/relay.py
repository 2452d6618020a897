"""Posts → Redis: what our processes published on `chat:`, `control:`, `signal:` and `dlq:` topics, for foreign agents.

After the commit, in order, at least once, under the same envelope id and bus id; the echo comes back by the recorder
and is dropped by its id (design 3.2). What came from Redis itself is marked as sent when it is stored.
"""

from __future__ import annotations

import os
import time
from collections import OrderedDict
from typing import Any, NamedTuple

import redis
import redis.asyncio
from django.db import connection

from conversations.failpoints import failpoint
from conversations.log import writing
from conversations.models import Post

BATCH = 500  # posts at once
REMEMBERED = 20_000  # echoes that may still come
REFUSED_FOR = 60.0  # seconds until a topic whose key is no stream is tried again

_UNSENT = """SELECT p.id,p.topic,p.bus_id,COALESCE(p.body,e.body) FROM conversations_post p
LEFT JOIN conversations_event e ON e.conversation_id=p.conversation_id AND e.seq=p.event_seq
WHERE p.sent_at IS NULL {} ORDER BY p.id LIMIT %s"""


class Unsent(NamedTuple):
    """A post to put on Redis."""

    id: int
    topic: str
    bus_id: str
    body: str


class Echoes:
    """Posts this process put on Redis lately: a hint that spares the record a look for them."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, topic: str, bus_id: str) -> None:
        """Expect this one back."""
        self._known[topic, bus_id] = None
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)

    def take(self, topic: str, bus_id: str) -> bool:
        """Tell whether this is one, and forget it."""
        return self._known.pop((topic, bus_id), ...) is None


class Relay:
    """Sends what is unsent. `unsent` and `mark` run in the recorder's database thread."""

    def __init__(self, echoes: Echoes) -> None:
        self.echoes = echoes
        self.waiting = 0
        self._maxlen = _maxlen()
        self._refused: dict[str, float] = {}

    def unsent(self) -> list[Unsent]:
        """Read the oldest unsent posts, but those of topics that Redis refused lately."""
        now = time.monotonic()
        self._refused = {topic: until for topic, until in self._refused.items() if until > now}
        but = f"AND p.topic NOT IN ({','.join(['%s'] * len(self._refused))})" if self._refused else ""
        with connection.cursor() as cursor:
            cursor.execute(_UNSENT.format(but), [*self._refused, BATCH])
            found = [Unsent(*row) for row in cursor.fetchall()]
        self.waiting = len(found) if len(found) < BATCH else Post.objects.filter(sent_at__isnull=True).count()
        return found

    async def send(self, client: redis.asyncio.Redis, posts: list[Unsent]) -> list[int]:
        """Put posts on their streams; answer which are there. After a redis.RedisError all have to go again."""
        failpoint("before-xadd")
        pipeline = client.pipeline(transaction=False)
        for post in posts:
            self.echoes.add(post.topic, post.bus_id)
            pipeline.execute_command("XADD", *self._command(post))
        answers = await pipeline.execute(raise_on_error=False)
        failpoint("after-xadd")
        return [post.id for post, answer in zip(posts, answers, strict=True) if self._is_there(post, answer)]

    def mark(self, sent: list[int]) -> None:
        """Note what is on Redis."""
        with writing():
            Post.objects.filter(id__in=sent).update(sent_at=time.time_ns() // 1000)
        self.waiting = max(0, self.waiting - len(sent))

    def _command(self, post: Unsent) -> list[Any]:
        trim = ["MAXLEN", "~", self._maxlen] if self._maxlen else []
        return [post.topic, *trim, "*", "id", post.bus_id, "payload", post.body]

    def _is_there(self, post: Unsent, answer: Any) -> bool:
        if not isinstance(answer, Exception):
            return True
        if not isinstance(answer, redis.ResponseError) or not str(answer).startswith("WRONGTYPE"):
            raise answer  # Redis as a whole cannot take it now
        self._refused[post.topic] = time.monotonic() + REFUSED_FOR
        return False


def _maxlen() -> int:
    """Answer BUS_STREAM_MAXLEN as magent2 reads it: unset, wrong or zero trims nothing."""
    text = os.environ.get("BUS_STREAM_MAXLEN", "")
    return int(text) if text.isascii() and text.isdigit() else 0
