"""Which recorder is the active one: a row that it renews, by the database's time.

A hint, so that two do not read the same for nothing. What keeps them from storing the same is the fence of the read
positions (`filing`).
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from pathlib import Path
from typing import Any

from django.db import IntegrityError

from conversations.log import writing
from conversations.models import Meta
from conversations.nodes import database_time

NAME = "recorder"
LASTS = 5.0  # seconds without renewal
RENEW_EVERY = 1.0


class Lease:
    """One recorder's claim. Every method runs in the recorder's database thread."""

    def __init__(self) -> None:
        self.holder = uuid.uuid4().hex
        self.looked_at = 0  # µs by Redis's clock: the last complete look at what streams there are
        self._value = ""

    def take(self) -> bool:
        """Be the active one if nobody is; answer whether it is so."""
        row = Meta.objects.filter(name=NAME).first()
        if row is None:
            return self._make()
        held = json.loads(row.value)
        if held["holder"] != self.holder and held["until"] > database_time() and not _is_gone(held):
            return False
        self.looked_at = max(self.looked_at, held["looked_at"])
        return self._write(row.value)

    def renew(self) -> bool:
        """Stay the active one; False when another has taken over."""
        return self._write(self._value)

    def release(self) -> None:
        """Let the standby take over now."""
        if self._value:
            self._write(self._value, until=0)

    def _make(self) -> bool:
        try:
            with writing():
                Meta.objects.create(name=NAME, value=(value := self._text()))
        except IntegrityError:
            return False
        self._value = value
        return True

    def _write(self, was: str, *, until: int | None = None) -> bool:
        value = self._text(until)
        with writing():
            is_mine = Meta.objects.filter(name=NAME, value=was).update(value=value) == 1
        self._value = value if is_mine else ""
        return is_mine

    def _text(self, until: int | None = None) -> str:
        ends_at = database_time() + int(LASTS * 1e6) if until is None else until
        told = {"holder": self.holder, "until": ends_at, "looked_at": self.looked_at}
        return json.dumps(told | {"place": _place(), "pid": os.getpid()})


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
    """Tell whether the holder was a process of this machine that is no more: then nobody waits for its lease to end."""
    if not held["place"] or held["place"] != _place():
        return False
    try:
        os.kill(held["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
