"""Track how far a response is, by the events of its run, and how long nothing has happened. One instance for each
reader."""

from __future__ import annotations

import time
from collections.abc import Iterable

from django.conf import settings

from conversations.asgi import route
from conversations.asgi.responses import resource, run_fields
from conversations.events.log.records import Stored
from conversations.events.response_ids import Json
from conversations.runs.responses.create import Received

READ_TIMEOUT = b"x-stainless-read-timeout"  # seconds; the official clients say by it how long they wait
MARGIN = 0.9  # of that time: the answer is there before the client gives up


class ResponseProgress:
    """The progress of one response for one reader, who waits at most `patience` seconds for something to happen."""

    def __init__(self, received: Received, patience: float) -> None:
        self._received, self._patience = received, patience
        self._status = "queued" if received.must_wait else "in_progress"
        self._waits_for = "its_turn" if received.must_wait else ""
        self._moved_at = time.monotonic()

    def on_events(self, events: Iterable[Stored]) -> None:
        """Record an event."""
        for event in events:
            if event.run != self._received.run:
                continue
            self._moved_at = time.monotonic()
            if event.kind == "run.waiting":
                self._waits_for = run_fields.waiting(event).reason
            elif event.kind in ("run.resumed", "run.started"):
                self._status, self._waits_for = "in_progress", ""

    @property
    def left_s(self) -> float:
        """Return for how many more seconds the reader waits."""
        return self._moved_at + self._patience - time.monotonic()

    @property
    def is_late(self) -> bool:
        """Return whether nothing has happened for longer than the reader waits."""
        return self.left_s <= 0

    def so_far(self, why: str = "") -> Json:
        """Return the response as it is while its run continues, for a later request by id; `why` says why its reader no
        longer waits, unless the run waits as well."""
        details = resource.waiting(self._waits_for) if self._waits_for else {"reason": why} if why else None
        return resource.resource(self._received, self._status, incomplete=details)

    def cut_short(self) -> Json:
        """Return the response that ends a stream before its run: incomplete, because streams have no other status."""
        details = resource.waiting(self._waits_for) if self._waits_for else {"reason": "still_in_progress"}
        return resource.resource(self._received, "incomplete", incomplete=details)


def patience_of(scope: route.Scope) -> float:
    """Return how many seconds a client waits while nothing happens: as its request says, but at most the setting."""
    header_value = route.header(scope, READ_TIMEOUT).decode("latin-1").strip()
    most: float = settings.CONFIG.response_wait_s
    if not header_value.replace(".", "", 1).isdecimal() or not header_value.isascii() or len(header_value) > 12:
        return most
    return min(most, float(header_value) * MARGIN)
