"""Count refusals of anonymous callers and a program's repeated ones: a flood costs one audit entry a minute instead of
one each (law E)."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from conversations.access.audit import chain
from conversations.core.client_network import client_network
from conversations.core.principals import SYSTEM, Principal
from conversations.core.write_transaction import write_transaction

WINDOW_S = 60
SINGLY = 20  # refusals of one program and verb that a window tells one by one, each of another target
LIMIT = 1_000  # windows open at once; later addresses share one


class RefusalKey(NamedTuple):
    """What is counted together. `target` must come from a small set: a route, a known person; never free text.
    `address` is a `client_network`."""

    address: str
    verb: str
    target: str
    by: Principal = SYSTEM


@dataclass
class _Window:
    reason: str
    opened: float = field(default_factory=time.monotonic)
    more: int = 0


_guard = threading.Lock()
_windows: dict[RefusalKey, _Window] = {}


def record_refusal(address: str, verb: str, target: str, *, reason: str) -> None:
    """Record the first refusal at once; those of the next minute become one entry with their number."""
    flush()
    what = RefusalKey(client_network(address), verb, target)
    with _guard:
        if what not in _windows and len(_windows) >= LIMIT:
            what = what._replace(address="others")
        if what in _windows:
            _windows[what].more += 1
            return
        _windows[what] = _Window(reason)
    try:
        _add_audit_entry(what if what.address == "others" else what._replace(address=address), reason, 1)
    except Exception:
        _count_again([(what, _Window(reason, more=1))])  # the window is open: `flush` writes it
        raise


def is_repeat(by: Principal, verb: str, target: str, reason: str) -> bool:
    """Return whether this refusal of a program is only counted (`flush` writes it); otherwise the caller enters it. A
    person's refusals are always entered."""
    if by.kind not in ("token", "agent"):
        return False
    with _guard:
        what = RefusalKey("", verb, target, by)
        open_count = (
            sum(1 for open_ in _windows if open_.by == by and open_.verb == verb) if what not in _windows else 0
        )
        if open_count >= SINGLY or (what not in _windows and len(_windows) >= LIMIT):
            what = what._replace(target="others")
        is_new = what not in _windows
        window = _windows.setdefault(what, _Window(reason))
        window.more += not is_new or what.target == "others"
        return bool(window.more)


def flush(*, everything: bool = False) -> None:
    """Write the counts of closed windows; all of them (`everything`) at shutdown. The server calls it about once a
    minute. What cannot be written now is written by a later call."""
    closed = _closed(everything=everything)
    try:
        while closed:
            what, window = closed[0]
            if window.more:
                _add_audit_entry(what, window.reason, window.more)
            del closed[0]
    finally:
        _count_again(closed)


def _count_again(unwritten: Sequence[tuple[RefusalKey, _Window]]) -> None:
    """Count what could not be written in windows that open now."""
    with _guard:
        for what, window in unwritten:
            _windows.setdefault(what, _Window(window.reason)).more += window.more


def _closed(*, everything: bool) -> list[tuple[RefusalKey, _Window]]:
    border = time.monotonic() - WINDOW_S
    with _guard:
        closed = [(what, window) for what, window in _windows.items() if everything or window.opened < border]
        for what, _ in closed:
            del _windows[what]
    return closed


def _add_audit_entry(what: RefusalKey, reason: str, times: int) -> None:
    with write_transaction():
        correlation = {"address": what.address, "times": times} if what.address else {"times": times}
        chain.add_entry(what.by, what.verb, what.target, outcome="refused", reason=reason, correlation=correlation)
