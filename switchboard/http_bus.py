"""The bus of an agent that reaches the server over HTTP. Nothing but the standard library."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import partial
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any

from switchboard import topics
from switchboard.api import Api
from switchboard.bus import BusMessage, check_read, compact
from switchboard.errors import Closed, Refused, UnknownPosition
from switchboard.sender import Sender
from switchboard.spool import Spool

MAX_BLOCK_MS = 30_000  # ms that the server lets one read wait
MAX_DECISION_WAIT_S = 25  # s that one request for a decision waits
MAX_READ = 500  # messages that the server answers at once
MAX_ID = 200  # characters of a message's id


class HttpBus:
    """A bus over `https://…` with a bearer token (`switchboard token NAME --role agent`).

    `publish` returns when the server has committed the message. With a `spool_dir` it also returns while the server is
    away, when the message is on disk: it is sent later, under the same id, before anything newer, by this process or,
    after a kill, by the next one with this folder. The folder is one agent's: what waits in it is sent with this token.
    Without one, and for reads, `Unreachable` is raised. A server on PostgreSQL answers reads of `stream:*` only, else
    `Refused` with `read_from_redis`. Safe to use from many threads; not across a fork.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        spool_dir: str | os.PathLike[str] | None = None,
        spool_bytes: int = 64 << 20,
        spool_messages: int = 100_000,
        timeout_s: float = 10.0,
    ) -> None:
        self._process = os.getpid()
        self._again = partial(
            HttpBus, url, token, spool_dir=spool_dir, spool_bytes=spool_bytes, spool_messages=spool_messages,
            timeout_s=timeout_s,
        )  # fmt: skip
        self._api = Api(url, token, timeout_s)
        folder = Path(spool_dir) if spool_dir else None
        spool = Spool(folder, max_bytes=spool_bytes, max_messages=spool_messages) if folder else None
        self._sender = Sender(self._api, spool)

    def of_this_process(self) -> HttpBus:
        """Return this bus; in a process that was forked since, a new one with the same settings."""
        return self if os.getpid() == self._process else self._again()

    @property
    def waiting(self) -> int:
        """How many published messages the server does not have yet."""
        return self._sender.waiting

    def publish(self, topic: str, message: BusMessage) -> str:
        """See `Bus`. After `SpoolFull`, or `Unreachable` without a spool, publish the same message again later."""
        self._check_process()
        self._sender.send(_line(topic, message))
        return message.id

    def publish_all(self, messages: Sequence[BusMessage], *, is_kept: bool = False) -> list[BaseException | None]:
        """Publish several, each on its own topic, in as few requests as possible; answer for each what `publish` would
        have raised. What cannot be sent at all is not, and holds up nothing. With `is_kept` and a spool, a request
        that is rejected as a whole, as for a revoked token, fails for none: they wait in the spool."""
        self._check_process()
        outcomes: list[BaseException | None] = [None] * len(messages)
        lines: dict[int, bytes] = {}
        for n, message in enumerate(messages):
            try:
                lines[n] = _line(message.topic, message)
            except Refused as error:
                outcomes[n] = error
        for n, outcome in zip(lines, self._sender.send_all(list(lines.values()), is_kept=is_kept), strict=True):
            outcomes[n] = outcome
        return outcomes

    def ask_approval(self, call: dict[str, str], wait_s: int = MAX_DECISION_WAIT_S) -> dict[str, Any]:
        """Ask in the inbox about a call of this agent's (`conversation_id`, `agent`, `name`, `tool_call_id`,
        `args_raw`), waiting at most so long; answer `{"status", "decision"?, "arguments"?, "message"?, "output"?}`.

        While `status` is `pending`, call again within 20 seconds, or the request is withdrawn. Raises `Unreachable`
        and `Refused`."""
        self._check_process()
        return self._api.ask_approval(compact(call).encode(), wait_s)

    def require_delivered(self, timeout_s: float) -> None:
        """Return when the server has all that `publish` returned for; see `Sender.require_delivered`."""
        self._check_process()
        self._sender.require_delivered(timeout_s)

    def save(self) -> None:
        """Put what waits for an answer of the server on disk at once; see `Sender.save`."""
        self._check_process()
        self._sender.save()

    def read(self, topic: str, last_id: str | None = None, limit: int = 100) -> list[BusMessage]:
        """See `Bus`; `limit` is at most 500."""
        self._check_process()
        check_read(topic, limit)
        return self._api.read(topic, last_id, limit, 0)

    def read_blocking(
        self, topic: str, last_id: str | None = None, limit: int = 100, block_ms: int = 1000
    ) -> list[BusMessage]:
        """See `Bus`; `limit` is at most 500. Longer than 30 s it asks again, from one fixed place; raises
        `UnknownPosition` if the topic was empty and 500 messages or more came at once."""
        self._check_process()
        check_read(topic, limit)
        deadline = time.monotonic() + block_ms / 1000
        is_empty = False
        if last_id is None and block_ms > MAX_BLOCK_MS:
            newest = self._api.read(topic, None, 1, 0)
            last_id, is_empty = (newest[-1].id if newest else None), not newest
        while True:
            left = max(1, round((deadline - time.monotonic()) * 1000))
            messages = self._api.read(topic, last_id, limit, min(left, MAX_BLOCK_MS))
            if is_empty:  # there was nothing, so all there is by now is new; what came between two calls too
                newest = self._api.read(topic, None, MAX_READ, 0)
                if len(newest) == MAX_READ:
                    raise UnknownPosition(f"{MAX_READ} messages or more came at once on {topic}, which was empty")
                messages = newest[:limit]
            if messages or time.monotonic() >= deadline or (last_id is None and not is_empty):
                return messages

    def flush(self, timeout_s: float = 10.0) -> bool:
        """Wait until the server has everything that was published before; False when time was too short."""
        self._check_process()
        return self._sender.flush(timeout_s)

    def close(self, timeout_s: float = 5.0) -> None:
        """Send what waits if that is possible in time, then stop. What remains stays in the spool."""
        self._check_process()
        self._sender.close(timeout_s)
        self._api.close()

    def __enter__(self) -> HttpBus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_process(self) -> None:
        if os.getpid() != self._process:  # the thread stayed behind, and the connections are the parent's
            raise Closed("this bus belongs to the process that created it: create a new one after forking")


def _line(topic: str, message: BusMessage) -> bytes:
    """Write a message as it is sent. Raises `Refused` for what no bus takes."""
    topics.check(topic)
    if not 1 <= len(message.id) <= MAX_ID:
        raise Refused(f"must be 1 to {MAX_ID} characters", field="id")
    text = f'{{"topic":{quoted(topic)},"payload":{compact(message.payload)},"id":{quoted(message.id)}}}'
    return text.encode()
