"""The tools that a model turn was offered, by name, with numbers for those it called. Called by `run_rows`.

A turn's event holds hashes of schemas; their names are loaded before drawing, since drawing runs no query.
"""

import re
import threading
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from markupsafe import Markup

from conversations.rendering import event_rows, richtext

MAX_TOOLS = 60  # tools in one row
MAX_NAMES = 20_000
HASH = re.compile(r"[0-9a-f]{64}")

_names: dict[str, str] = {}
_lock = threading.Lock()


class OfferedToolView(NamedTuple):
    """A tool in a turn. `hash` is empty for a tool that was not offered; `places` are its numbers among the turn's
    calls."""

    name: Markup
    hash: str
    places: tuple[int, ...]


class Offered(NamedTuple):
    """What an agent's turn was offered; `called` in the order of the calls."""

    agent: str
    called: tuple[OfferedToolView, ...]
    every: tuple[OfferedToolView, ...]
    left_out: int


def learn(names: Mapping[str, str]) -> None:
    """Add names of schemas, by hash."""
    with _lock:
        if len(_names) + len(names) > MAX_NAMES:
            _names.clear()
        _names.update(names)


def unknown(hashes: Iterable[str]) -> set[str]:
    """Return the hashes whose names are still to be loaded."""
    return {tool_hash for tool_hash in hashes if tool_hash not in _names}


def learned() -> int:
    """Return how many names are known: what was drawn with fewer may be drawn again."""
    return len(_names)


def hashes_of(tools: object) -> list[str]:
    """Return the hashes in a turn's body; anything else in their place is dropped."""
    entries = tools if isinstance(tools, list) else []
    return [entry for entry in entries[:1000] if isinstance(entry, str) and HASH.fullmatch(entry)]


def of_turn(read: event_rows.ParsedEvent) -> Offered | None:
    """Return what a turn of ours was offered; None for a turn reported from outside."""
    if read.event.run is None:
        return None
    tools, calls = hashes_of(read.body.get("tools")), _calls(read.body.get("called"))
    offers = [OfferedToolView(_name(tool), tool, tuple(n for n, (_, hash) in calls if hash == tool)) for tool in tools]
    strays = [OfferedToolView(richtext.inline(name[:200]), "", (n,)) for n, (name, hash) in calls if hash not in tools]
    called = sorted([*(tool for tool in offers if tool.places), *strays], key=lambda tool: tool.places)
    return Offered(
        read.payload.agent or "", tuple(called[:MAX_TOOLS]), tuple(offers[:MAX_TOOLS]), max(0, len(offers) - MAX_TOOLS)
    )


def _calls(called: object) -> list[tuple[int, tuple[str, str]]]:
    calls = [call for call in called if isinstance(call, dict)] if isinstance(called, list) else []
    named = [(event_rows.line(call.get("name")), event_rows.line(call.get("schema"))) for call in calls[:MAX_TOOLS]]
    return list(enumerate(named, start=1))


def _name(hash: str) -> Markup:
    return richtext.inline(_names.get(hash, f"schema {hash[:8]}")[:200])
