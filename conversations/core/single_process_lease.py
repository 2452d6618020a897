"""Which process does what one alone should: a row that it renews, by the database's time.

A hint, so that two do not do the same for nothing: what keeps them from storing the same is a fence of the work's own
(read positions, `indexed_seq`).
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

from conversations.core.node_heartbeat import database_now
from conversations.core.write_transaction import write_transaction
from conversations.models import Meta

LEASE_S = 5.0  # without renewal
RENEW_EVERY_S = 1.0


class SingleProcessLease:
    """One process's claim to a piece of work. Every method runs in the thread that does it."""

    def __init__(self, name: str) -> None:
        self.name, self.holder = name, uuid.uuid4().hex
        self._value = ""
        self._renewed_at = float("-inf")

    def hold(self) -> bool:
        """Be the active one, or stay it: renewed when that is due. Answer whether it is so."""
        if self._value and time.monotonic() - self._renewed_at < RENEW_EVERY_S:
            return True
        is_mine = (bool(self._value) and self.renew()) or self.take()
        self._renewed_at = time.monotonic()
        return is_mine

    def take(self) -> bool:
        """Be the active one if nobody is; answer whether it is so."""
        row = Meta.objects.filter(name=self.name).first()
        if row is None:
            return self._make()
        held = json.loads(row.value)
        if held["holder"] != self.holder and held["until"] > database_now() and not _is_gone(held):
            return False
        self.learn(held)
        return self._write(row.value)

    def renew(self) -> bool:
        """Stay the active one; False when another has taken over."""
        return self._write(self._value)

    def release(self) -> None:
        """Let another take over now."""
        if self._value:
            self._write(self._value, until=0)

    def learn(self, held: dict[str, Any]) -> None:
        """Take over what the last holder told."""

    def handover(self) -> dict[str, Any]:
        """Return what the next holder shall know."""
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
        value = self._text(until)
        with write_transaction():
            is_mine = Meta.objects.filter(name=self.name, value=was).update(value=value) == 1
        self._value = value if is_mine else ""
        return is_mine

    def _text(self, until: int | None = None) -> str:
        ends_at = database_now() + int(LEASE_S * 1e6) if until is None else until
        fields = {"holder": self.holder, "until": ends_at, **self.handover()}
        return json.dumps(fields | {"place": _place(), "pid": os.getpid()})


def _place() -> str:
    """Name this machine and its space of process ids: only there a pid says something."""
    parts = [socket.gethostname()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            parts.append(os.readlink(path) if path.endswith("pid") else Path(path).read_text().strip())
        except OSError:
            return ""
    return " ".join(parts)


def _is_gone(held: dict[str, Any]) -> bool:
    """Return whether the holder is a process of this machine that has ended: then nobody waits for its lease."""
    if not held["place"] or held["place"] != _place():
        return False
    try:
        os.kill(held["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
