"""Put on Redis what our processes published on `chat:`, `control:`, `signal:` and `dlq:` topics, for external agents.

After the commit, in order, at least once, with the same envelope id and bus id; the recorder reads it back and drops it
by its id (§3.2). What a person said is also put on the conversation's `stream:` topic, for followers through a magent2
gateway. What came from Redis counts as sent when it is stored; what is older than the first use of Redis is not sent
(`relay_start`).
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections import OrderedDict
from datetime import UTC, datetime
from itertools import compress
from typing import Any, NamedTuple

import msgspec
import redis
import redis.asyncio
from django.db import connection

from conversations.core.errors import SwitchboardError
from conversations.core.failpoints import failpoint
from conversations.core.ids import copy_id
from conversations.events import payload
from conversations.events.log import bounded_reads, write_transaction
from conversations.models import Post
from conversations.transport import relay_start
from switchboard.redis_bus import stream_maxlen

logger = logging.getLogger(__name__)

_BEYOND = re.compile(r"[^\x00-\x7f]+")
BATCH = 500  # posts at once
REMEMBERED = 20_000  # echoes that may still come
SWEEP = 5.0  # seconds of one sweep at most: what was committed behind it waits no longer
REFUSED_FOR = 60.0  # seconds until a topic that Redis refused is tried again

# Answers that refuse every topic alike, by redis-py's class or, where it has none, by their first word.
_OF_SERVER = (redis.exceptions.OutOfMemoryError, redis.exceptions.ReadOnlyError, redis.exceptions.ClusterDownError)
_OF_SERVER_CODES = ("BUSY", "MISCONF", "NOREPLICAS")

STREAM_COPY = 2  # of an envelope: its copies 0 and 1 are on the topics of its conversation and of its agent

_COLUMNS = "id,topic,bus_id,principal,body"
_UNSENT = """FROM (SELECT p.id AS id,p.topic AS topic,p.bus_id AS bus_id,COALESCE(e.principal,'') AS principal,
COALESCE(p.body,e.body) AS body FROM conversations_post p
LEFT JOIN conversations_event e ON e.conversation_id=p.conversation_id AND e.seq=p.event_seq
WHERE p.sent_at IS NULL AND p.id>%s {}) AS unsent"""


class Unsent(NamedTuple):
    """A post to put on Redis."""

    id: int
    topic: str
    bus_id: str
    principal: str  # who said it; empty where it is in no conversation
    body: str

    def on_stream(self) -> tuple[str, str, str] | None:
        """Return topic, bus id and text that tell followers of the stream what a person said, as magent2's gateway
        does; None for anything else. It has the envelope's id, by which the record recognizes it."""
        if not self.principal or not self.topic.startswith("chat:"):
            return None
        try:
            message = payload.parse(self.body.encode("utf-8", "replace"))
        except SwitchboardError:
            return None
        is_persons = "user:" in (self.principal[:5], (message.sender or "")[:5])
        is_here = message.kind == "message" and self.topic == f"chat:{message.conversation_id}"
        if not message.id or not (is_persons and is_here):
            return None
        fields = {"event": "user_message", "id": message.id, "conversation_id": message.conversation_id}
        fields |= {
            "sender": message.sender,
            "text": message.content,
            "created_at": message.created_at or datetime.now(UTC).isoformat(),
        }
        bus_id = copy_id(message.id, STREAM_COPY)
        return f"stream:{message.conversation_id}", bus_id, json.dumps(fields, separators=(",", ":"))


class Echoes:
    """Posts that this process recently put on Redis, so that the record need not be queried for them."""

    def __init__(self) -> None:
        self._relayed: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, topic: str, bus_id: str) -> None:
        """Expect a post to come back."""
        self._relayed[topic, bus_id] = None
        if len(self._relayed) > REMEMBERED:
            self._relayed.popitem(last=False)

    def take(self, topic: str, bus_id: str) -> bool:
        """Return whether this is an expected post, and stop expecting it."""
        return self._relayed.pop((topic, bus_id), ...) is None


class Relay:
    """Sends unsent posts. `unsent` and `mark` run in the recorder's database thread."""

    def __init__(self, echoes: Echoes) -> None:
        self.echoes = echoes
        self.waiting = 0
        self._maxlen = stream_maxlen()
        self._refused: dict[str, float] = {}
        self._line: int | None = None  # the last post that stays here
        self._after = 0  # the last post of this sweep; 0 before it
        self._sweep_ends = 0.0

    def unsent(self) -> list[Unsent]:
        """Read the next unsent posts, up to 500 or 4 MiB, except those of topics that Redis recently refused; empty at
        the end of a sweep.

        A sweep goes once through all unsent posts, oldest first; the next sweep begins with whatever was left.
        """
        if self._line is None:
            self._line = relay_start.ensure_start()
        now = time.monotonic()
        is_first = not self._after or now > self._sweep_ends
        if is_first:
            self._after, self._sweep_ends = self._line, now + SWEEP
        self._refused = {topic: until for topic, until in self._refused.items() if until > now}
        but = f"AND p.topic NOT IN ({','.join(['%s'] * len(self._refused))})" if self._refused else ""
        with connection.cursor() as cursor:
            source, values = _UNSENT.format(but), [self._after, *self._refused]
            rows = bounded_reads.rows(cursor, _COLUMNS, source, values, order="id", limit=BATCH)
        posts = [Unsent(*row) for row in rows]
        if is_first:  # counted once a sweep
            is_all = len(rows) < BATCH and bounded_reads.size(rows) <= bounded_reads.READ_BYTES
            self.waiting = len(posts) if is_all else relay_start.unsent().count()
        if not posts:
            self._after = 0
        return posts

    async def send(self, client: redis.asyncio.Redis, posts: list[Unsent]) -> tuple[list[int], Exception | None]:
        """Add posts to their streams; return the ids of those that are there, which `mark` has to note whatever else
        happened, and why Redis takes no more. After a redis.RedisError raised here all have to be sent again."""
        failpoint("before-xadd")
        are_there, error = await self._put(client, [(post.topic, post.bus_id, wire_text(post.body)) for post in posts])
        failpoint("after-xadd")
        there = list(compress(posts, are_there))
        copies = [copy for post in there if (copy := post.on_stream()) is not None]
        if copies:  # one that is refused is not tried again: its post is there
            _, copy_error = await self._put(client, copies)
            error = error or copy_error
        return [post.id for post in there], error

    async def _put(
        self, client: redis.asyncio.Redis, entries: list[tuple[str, str, str]]
    ) -> tuple[list[bool], Exception | None]:
        """Add entries (topic, bus id, text) to their streams. Return of each whether it is there and nothing before it
        in its topic is missing, and the error that is not about a topic."""
        pipeline = client.pipeline(transaction=False)
        for entry in entries:
            self._add(pipeline, *entry)
        errors: dict[str, Exception] = {}
        are_there: list[bool] = []
        for (topic, _, _), answer in zip(entries, await pipeline.execute(raise_on_error=False), strict=True):
            if isinstance(answer, Exception):
                errors.setdefault(topic, answer)
            are_there.append(topic not in errors)
        refused = {topic: error for topic, error in errors.items() if _is_about_topic(error)}
        if refused:
            self._refused |= dict.fromkeys(refused, time.monotonic() + REFUSED_FOR)
            topic, reason = next(iter(refused.items()))
            logger.warning("relay: Redis refuses %s (%d topics in all): %s", topic, len(refused), reason)
        return are_there, next((error for topic, error in errors.items() if topic not in refused), None)

    def mark(self, posts: list[Unsent], sent: list[int]) -> None:
        """Note which of these posts are on Redis, and continue after them."""
        with write_transaction():
            Post.objects.filter(id__in=sent).update(sent_at=time.time_ns() // 1000)
        self.waiting = max(0, self.waiting - len(sent))
        self._after = posts[-1].id

    def begin_anew(self) -> None:
        """Begin a new sweep: the last one broke off, and nobody knows what of it arrived."""
        self._after = 0

    def _add(self, pipeline: Any, topic: str, bus_id: str, text: str) -> None:
        self.echoes.add(topic, bus_id)
        trim = ["MAXLEN", "~", self._maxlen] if self._maxlen else []
        pipeline.execute_command("XADD", topic, *trim, "*", "id", bus_id, "payload", text)


def _is_about_topic(error: Exception) -> bool:
    """Return whether Redis refuses this topic (its key is not a stream, is on another node, is not permitted), and not
    everything."""
    if not isinstance(error, redis.ResponseError) or isinstance(error, _OF_SERVER):
        return False
    return not str(error).startswith(_OF_SERVER_CODES)


def wire_text(body: str) -> str:
    """Return a JSON text as magent2 writes it: compact, and ASCII. Numbers stay as they are written; what is not JSON
    stays as it is."""
    try:
        compact = msgspec.json.format(body, indent=-1)
    except (msgspec.MsgspecError, RecursionError):
        return body
    return compact if compact.isascii() else _BEYOND.sub(_escaped, compact)


def _escaped(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]
