"""Refusals of nobody in particular, counted: a flood of them costs one audit entry a minute, not one each (law E)."""

import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from conversations import audit
from conversations.log.writing import writing
from conversations.principals import SYSTEM

WINDOW_S = 60
LIMIT = 1_000  # windows open at once; later addresses share one


class What(NamedTuple):
    """What is counted together. `target` must come from a small set: a route, a known person; never free text."""

    address: str
    verb: str
    target: str


@dataclass
class _Window:
    reason: str
    opened: float = field(default_factory=time.monotonic)
    more: int = 0


_guard = threading.Lock()
_windows: dict[What, _Window] = {}


def count(address: str, verb: str, target: str, *, reason: str) -> None:
    """Record the first at once; those of the next minute become one entry that says how many."""
    flush()
    what = What(address, verb, target)
    with _guard:
        if what not in _windows and len(_windows) >= LIMIT:
            what = what._replace(address="others")
        if what in _windows:
            _windows[what].more += 1
            return
        _windows[what] = _Window(reason)
    _enter(what, reason, 1)


def flush(*, everything: bool = False) -> None:
    """Write the counts of closed windows; `everything` at shutdown. The server calls it about once a minute."""
    for what, window in _closed(everything=everything):
        if window.more:
            _enter(what, window.reason, window.more)


def _closed(*, everything: bool) -> list[tuple[What, _Window]]:
    border = time.monotonic() - WINDOW_S
    with _guard:
        closed = [(what, window) for what, window in _windows.items() if everything or window.opened < border]
        for what, _ in closed:
            del _windows[what]
    return closed


def _enter(what: What, reason: str, times: int) -> None:
    with writing():
        facts = {"address": what.address, "times": times}
        audit.enter(SYSTEM, what.verb, what.target, outcome="refused", reason=reason, correlation=facts)
