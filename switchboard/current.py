"""Select the bus of this process, once: the one that was set, or else the one configured in the environment."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

from switchboard.bus import Bus
from switchboard.errors import NotConfigured
from switchboard.http_bus import HttpBus
from switchboard.redis_bus import RedisBus
from switchboard.spool import Spool

_lock = threading.Lock()
_bus: Bus | None = None
_made_in: int | None = None  # the process that made `_bus` of its environment


def get_bus() -> Bus:
    """Return this process's bus, the same one each time.

    The bus that was set; else with `SWITCHBOARD_URL` and `SWITCHBOARD_TOKEN` an `HttpBus` that spools to
    `SWITCHBOARD_SPOOL_DIR` (left out: a folder under `~/.local/state`; empty: no spool); else with `REDIS_URL` a
    `RedisBus`. Raises `NotConfigured`.
    """
    global _bus, _made_in
    with _lock:
        if _bus is None or _made_in not in (None, os.getpid()):  # a fork needs its own
            _bus, _made_in = _of_environment(), os.getpid()
        return _bus


def set_bus(bus: Bus | None) -> None:
    """Use this bus from now on; None: use the environment again. The previous bus has to be closed by the caller."""
    global _bus, _made_in
    with _lock:
        _bus, _made_in = bus, None


def set_bus_for_testing(bus: Bus | None) -> None:
    """Use this bus in a test; None restores the default."""
    set_bus(bus)


def _of_environment() -> Bus:
    url, token, redis_url = (os.environ.get(n, "") for n in ("SWITCHBOARD_URL", "SWITCHBOARD_TOKEN", "REDIS_URL"))
    if url and token:
        return HttpBus(url, token, spool_dir=_spool_dir(url, token))
    if redis_url:
        return RedisBus(redis_url)
    if url:
        raise NotConfigured("SWITCHBOARD_URL is set but SWITCHBOARD_TOKEN is not: the HTTP bus needs both")
    raise NotConfigured("no bus configured: set SWITCHBOARD_URL and SWITCHBOARD_TOKEN, or REDIS_URL, or call set_bus()")


def _spool_dir(url: str, token: str) -> Path | None:
    """Return a separate spool folder for each server and agent, because a spool is sent again with the token of the
    process that finds it. Without `AGENT_NAME`, each token has its own."""
    chosen = os.environ.get("SWITCHBOARD_SPOOL_DIR")
    if chosen is not None:
        return Path(chosen) if chosen else None
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    spools, agent = state / "switchboard" / "spool", os.environ.get("AGENT_NAME", "").strip()
    named = spools / _digest(f"{url}\0{agent}")
    if agent:
        return named
    own = spools / _digest(f"{url}\0\0{token}")
    if any(path.stem.isdigit() and path.stat().st_size for path in named.glob("*.jsonl")):
        _take_over(named, own)  # an earlier version's folder, which all tokens shared
    return own


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _take_over(shared: Path, own: Path) -> None:
    """Move what waits in a spool folder into another one."""
    spool = Spool(own, max_bytes=0, max_messages=0)
    try:
        spool.adopt(shared)
    finally:
        spool.close()
