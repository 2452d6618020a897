"""Which of several processes does work that only one should do: a row that it renews, by the database's clock.

Only an optimization against double work: a fence of the work itself (read positions, `indexed_seq`) prevents double
results.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from pathlib import Path
from typing import Any

from django.db import IntegrityError

from conversations.core.database_clock import database_now
from conversations.core.write_transaction import write_transaction
from conversations.models import Meta

LEASE_S = 5.0  # without renewal
RENEW_EVERY_S = 1.0


class SingleProcessLease:
    """One process's lease on a kind of work. Every method runs in the thread that does the work."""

    def __init__(self, name: str) -> None:
        self.name, self.holder = name, uuid.uuid4().hex
        self._value = ""
        self._renewed_at = float("-inf")

    def hold(self) -> bool:
        """Take the lease, or renew it if due; return whether this process holds it."""
        if self._value and time.monotonic() - self._renewed_at < RENEW_EVERY_S:
            return True
        is_mine = (bool(self._value) and self.renew()) or self.take()
        self._renewed_at = time.monotonic()
        return is_mine

    def take(self) -> bool:
        """Take the lease if it is free; return whether this process holds it."""
        row = Meta.objects.filter(name=self.name).first()
        if row is None:
            return self._make()
        held = json.loads(row.value)
        if held["holder"] != self.holder and held["until"] > database_now() and not _is_gone(held):
            return False
        self.learn(held)
        return self._write(row.value)

    def renew(self) -> bool:
        """Renew the lease; return False if another process has taken it."""
        return self._write(self._value)

    def release(self) -> None:
        """Release the lease, so that another process can take it now."""
        if self._value:
            self._write(self._value, until=0)

    def learn(self, held: dict[str, Any]) -> None:
        """Take over what the last holder stored in `handover`."""

    def handover(self) -> dict[str, Any]:
        """Return what the next holder needs to know."""
        return {}

    def _make(self) -> bool:
        try:
            with write_transaction():
                Meta.objects.create(name=self.name, value=(value := self._text()))
        except IntegrityError:
            return False
        self._value = value
        return True

    def _write(self, was: str, *, until: int | None = None) -> bool:
        with write_transaction():
            value = self._text(until)  # not before the wait for the lock
            is_mine = Meta.objects.filter(name=self.name, value=was).update(value=value) == 1
        self._value = value if is_mine else ""
        return is_mine

    def _text(self, until: int | None = None) -> str:
        ends_at = database_now() + int(LEASE_S * 1e6) if until is None else until
        fields = {"holder": self.holder, "until": ends_at, **self.handover()}
        return json.dumps(fields | {"place": _place(), "pid": os.getpid()})


def _place() -> str:
    """Return the name of this machine and its pid namespace, in which a pid is meaningful."""
    parts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            parts.append(os.readlink(path) if path.endswith("pid") else Path(path).read_text().strip())
        except OSError:
            return ""
    return " ".join(parts)


def _is_gone(held: dict[str, Any]) -> bool:
    """Return whether the holder is an ended process of this machine, so nobody waits for its lease."""
    if not held["place"] or held["place"] != _place():
        return False
    try:
        os.kill(held["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
