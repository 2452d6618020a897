"""Redis Streams, for agents beside a Redis: byte for byte what magent2 writes and reads (`switchboard-client[redis]`).

A stream's key is the topic, without a prefix; an entry's fields are `id` (the bus message's) and `payload` (compact
JSON). No consumer group: each reader sees everything, and other programs' groups lose nothing.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from switchboard import topics
from switchboard.bus import BusMessage, check_read, compact
from switchboard.errors import NotConfigured, Refused, UnknownPosition, Unreachable

SCANNED_AT_ONCE = 1_000  # entries
PLACES = 1_000  # ids remembered with their entries, so that following a topic scans nothing
_LATER = "MISCONF ", "NOREPLICAS ", "BUSY "  # how answers begin that have no class of their own
_ENTRY = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_log = logging.getLogger("switchboard")
_Entry = tuple[str, dict[str, str]]


class RedisBus:
    """A bus over a Redis. Raises `NotConfigured` without the package redis, `Unreachable` while Redis is away or
    accepts nothing (its memory is full, it is a replica, it cannot save), `Refused` if the user may not, or the key is
    no stream.

    `last_id` may be an entry's id (`1700000000000-0`), or a message's, which is found by a scan of the topic. Redis
    stores an id that is published twice twice; the record keeps it once. A payload that is no JSON object is read as
    `{}` with a warning, as magent2 does: one bad entry must not stop an agent (the record quarantines it).
    Streams are trimmed only with `BUS_STREAM_MAXLEN` above 0, and then roughly.
    """

    def __init__(self, url: str, *, timeout_s: float = 10.0) -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise NotConfigured("the Redis bus needs the package redis: install switchboard-client[redis]") from error
        self._errors = redis.exceptions
        # Any: redis annotates one answer for its sync and its async client.
        self._redis: Any = redis.Redis.from_url(
            url,
            decode_responses=True,
            encoding_errors="replace",
            protocol=2,
            socket_timeout=timeout_s,
            retry=Retry(NoBackoff(), 1),  # on a new connection: the old one may be from before a restart
        )
        self._slice_ms = round(timeout_s * 500)  # of blocking, below the timeout: a hung Redis is found out
        self._places: OrderedDict[tuple[str, str], str] = OrderedDict()

    def publish(self, topic: str, message: BusMessage) -> str:
        """See `Bus`."""
        topics.check(topic)
        fields = {"id": message.id, "payload": compact(message.payload)}
        with self._reaching():
            entry = self._add(topic, fields)
        if (topic, message.id) not in self._places:  # published again: a reader may have come no further than the first
            self._remember(topic, message.id, entry)
        return message.id

    def read(self, topic: str, last_id: str | None = None, limit: int = 100) -> list[BusMessage]:
        """See `Bus`."""
        check_read(topic, limit)
        with self._reaching():
            if last_id is None:
                return self._messages(topic, self._redis.xrevrange(topic, count=limit)[::-1])
            return self._messages(topic, self._after(topic, self._entry_of(topic, last_id), limit))

    def read_blocking(
        self, topic: str, last_id: str | None = None, limit: int = 100, block_ms: int = 1000
    ) -> list[BusMessage]:
        """See `Bus`."""
        check_read(topic, limit)
        deadline = time.monotonic() + block_ms / 1000
        with self._reaching():
            if last_id is None:
                newest = self._redis.xrevrange(topic, count=1)
                entry_id = newest[0][0] if newest else "0-0"
            else:
                entry_id = self._entry_of(topic, last_id)
                if entries := self._after(topic, entry_id, limit):
                    return self._messages(topic, entries)
            while (left := round((deadline - time.monotonic()) * 1000)) > 0:
                if answer := self._redis.xread({topic: entry_id}, count=limit, block=min(left, self._slice_ms)):
                    return self._messages(topic, answer[0][1])
        return []

    def close(self) -> None:
        """Close the connections."""
        self._redis.close()

    def __enter__(self) -> RedisBus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, topic: str, fields: dict[str, str]) -> str:
        """Append an entry. A trimmed XADD that Redis refuses is done again untrimmed, as magent2 does."""
        if longest := stream_maxlen():
            try:
                return str(self._redis.xadd(topic, fields, maxlen=longest, approximate=True))
            except self._errors.ResponseError as error:
                if self._is_temporary(error):
                    raise
                _log.warning("Redis refused to trim %s, appended untrimmed: %s", topic, error)
        return str(self._redis.xadd(topic, fields))

    def _after(self, topic: str, entry: str, limit: int) -> Sequence[_Entry]:
        """Read after an entry that is there still, both asked at one moment. Raises `UnknownPosition`."""
        pipeline = self._redis.pipeline(transaction=True)
        pipeline.xrange(topic, entry, entry)
        pipeline.xrange(topic, f"({entry}", count=limit)
        here, raw_entries = pipeline.execute()
        if not here:
            raise UnknownPosition(f"there is no entry {entry} on {topic!r} anymore", field="last_id")
        entries: Sequence[_Entry] = raw_entries
        return entries

    def _entry_of(self, topic: str, last_id: str) -> str:
        if _ENTRY.fullmatch(last_id):
            return last_id
        return self._places.get((topic, last_id)) or self._scan(topic, last_id)

    def _scan(self, topic: str, id_: str) -> str:
        """Find the first entry with a message's id, from the start: what is there twice is rather read twice."""
        start = "-"
        while chunk := self._redis.xrange(topic, start, count=SCANNED_AT_ONCE):
            for entry, fields in chunk:
                if fields.get("id") == id_:
                    return str(entry)
            start = f"({chunk[-1][0]}"
        raise UnknownPosition(f"there is no message {id_!r} on {topic!r} anymore", field="last_id")

    def _messages(self, topic: str, entries: Sequence[_Entry]) -> list[BusMessage]:
        messages = [BusMessage(topic, _payload(topic, e, f), f.get("id") or e) for e, f in entries]
        if messages:
            self._remember(topic, messages[-1].id, entries[-1][0])
        return messages

    def _remember(self, topic: str, id_: str, entry: str) -> None:
        self._places[topic, id_] = entry
        if len(self._places) > PLACES:
            self._places.popitem(last=False)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except (self._errors.AuthenticationError, self._errors.AuthorizationError) as error:
            raise Refused(f"Redis refuses this user: {error}") from error
        except (self._errors.ConnectionError, self._errors.TimeoutError) as error:
            raise Unreachable(f"Redis does not respond: {error}") from error
        except self._errors.RedisError as error:
            if self._is_temporary(error):
                raise Unreachable(f"Redis cannot do this now: {error}") from error
            raise Refused(f"Redis refuses this: {error}") from error

    def _is_temporary(self, error: Exception) -> bool:
        """Return whether Redis may do the same later."""
        known = self._errors.OutOfMemoryError, self._errors.ReadOnlyError, self._errors.ClusterError
        return isinstance(error, (*known, self._errors.TryAgainError)) or str(error).startswith(_LATER)


def _payload(topic: str, entry: str, fields: dict[str, str]) -> dict[str, Any]:
    try:
        payload = json.loads(fields["payload"])
    except (KeyError, ValueError, RecursionError):
        payload = None
    if isinstance(payload, dict):
        return payload
    _log.warning("entry %s on %s has no JSON object as payload; read as {}", entry, topic)
    return {}


def stream_maxlen() -> int:
    """Read `BUS_STREAM_MAXLEN`; 0, which is no trimming, when it is unset or not a number."""
    try:
        return max(0, int(os.environ.get("BUS_STREAM_MAXLEN", "")))
    except ValueError:
        return 0
