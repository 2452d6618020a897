"""The bus: one protocol for all transports, with which agents publish and read; `get_bus()` selects one.

`read(topic, last_id, limit)` returns the messages strictly after `last_id`, ascending; None means the newest `limit`.
`read_blocking` waits for new messages; there, None means only messages from now on. A `last_id` that is not on the
topic raises `UnknownPosition`: no bus ever repeats or skips messages silently.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from switchboard import topics
from switchboard.errors import Refused
from switchboard.ids import new_id

MAX_READ = 1000  # messages in one read; over HTTP 500
MAX_PAYLOAD = 1 << 20  # bytes of JSON
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_SURROGATES = re.compile(r"\\\\|\\ud[89ab]..\\ud[c-f]..|(\\ud[89a-f]..)")  # in JSON: a backslash, a pair, or a lone one


@dataclass(frozen=True, slots=True)
class BusMessage:
    """A message on a topic. `id` is the bus's own, independent of any id in the payload; ids that we create are ordered
    by time."""

    topic: str
    payload: dict[str, Any]  # a JSON object
    id: str = field(default_factory=new_id)


class Bus(Protocol):
    """The methods of every transport."""

    def publish(self, topic: str, message: BusMessage) -> str:
        """Send a message to a topic; return its id. Raises `Refused` for a message that no bus accepts."""

    def read(self, topic: str, last_id: str | None = None, limit: int = 100) -> list[BusMessage]:
        """Read without waiting."""

    def read_blocking(
        self, topic: str, last_id: str | None = None, limit: int = 100, block_ms: int = 1000
    ) -> list[BusMessage]:
        """Read, waiting up to `block_ms` for the first message."""


def check_read(topic: str, limit: int) -> None:
    """Raise `Refused` unless the topic is valid and `limit` is 1 to 1000."""
    topics.check(topic)
    if not 1 <= limit <= MAX_READ:
        raise Refused(f"must be 1 to {MAX_READ}; got {limit}", field="limit")


def compact(payload: dict[str, Any]) -> str:
    """Return a payload as every bus carries it, as compact JSON in ASCII, with U+FFFD for lone surrogates, which the
    server's JSON cannot hold. Raises `Refused` above 1 MiB and if it is not JSON."""
    try:
        text = _encode(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"must be valid JSON: {error}", field="payload") from error
    if not isinstance(payload, dict):
        raise Refused(f"must be a JSON object; got {type(payload).__name__}", field="payload")
    if len(text) > MAX_PAYLOAD:
        raise Refused(f"must be at most {MAX_PAYLOAD:,} bytes; got {len(text):,}", field="payload")
    return _SURROGATES.sub(lambda match: "\\ufffd" if match[1] else match[0], text) if "\\ud" in text else text
