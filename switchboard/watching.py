"""Follow a topic: new messages as they come, in order, none twice, over any number of interruptions."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Iterator

from switchboard.bus import Bus, BusMessage
from switchboard.current import get_bus
from switchboard.errors import UnknownPosition, Unreachable

READ_WAIT_MS = 20_000
FIRST_READ_WAIT_MS = 1_000  # on an empty topic
MAX_WAIT_S = 5.0  # seconds between attempts while the bus is away
AT_ONCE = 500  # messages in one read
_log = logging.getLogger("switchboard")


def watch(topic: str, *, after: str | None = None, bus: Bus | None = None) -> Iterator[BusMessage]:
    """Yield what comes on a topic after the message `after`; left out, from the moment of the first `next()`.

    `chat:{Name}` is an agent's post, `stream:{conversation}` everything that happens in a conversation (on Redis: what
    its agents stream). Keep the last message's id to go on from there. Raises `UnknownPosition` when that
    is gone, and when more messages came on an empty topic than one read returns while the bus was away.
    """
    bus = bus or get_bus()
    position, is_placed, pause_s = after, after is not None, 0.0
    is_near = True  # the bus answered a moment ago
    while True:
        try:
            if not is_placed:
                newest = bus.read(topic, limit=1)
                position, is_placed = (newest[-1].id if newest else None), True
            messages = _after(bus, topic, position, is_near=is_near)
        except Unreachable as error:
            is_near = False
            pause_s = min(MAX_WAIT_S, max(0.1, pause_s * 2))
            _log.warning("cannot read %s, retrying: %s", topic, error)
            time.sleep(max(pause_s * random.uniform(0.5, 1), error.retry_after_s))
            continue
        pause_s, is_near = 0.0, True
        for message in messages:
            position = message.id
            yield message


def _after(bus: Bus, topic: str, position: str | None, *, is_near: bool) -> list[BusMessage]:
    """Wait for what comes after `position`. None: the topic was empty, so whatever is there by now is new.

    What comes between a read and the wait after it is found by the next read, not skipped. Raises `UnknownPosition` if
    more came than one read returns and the first of it is not known: it was not waited for.
    """
    if position is not None:
        return bus.read_blocking(topic, position, AT_ONCE, READ_WAIT_MS)
    first = bus.read_blocking(topic, None, 1, FIRST_READ_WAIT_MS)
    newest = bus.read(topic, limit=AT_ONCE)
    if len(newest) < AT_ONCE:
        return newest
    if first and is_near and first[0].id not in [message.id for message in newest[1:]]:
        return first  # the others follow after it
    raise UnknownPosition(
        f"more than {AT_ONCE} messages came on {topic}, which was empty, while the bus was not read: read the topic "
        "and watch it after the last message that you have",
        field="after",
    )
