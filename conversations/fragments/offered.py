"""A model's turn → the tools that it was offered, by name, those that it called numbered. Called by runs.

A turn's event holds hashes of schemas; their names are learned before the drawing, since a drawing asks no database.
"""

import re
import threading
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from markupsafe import Markup

from conversations.fragments import faces, richtext

MOST = 60  # tools in one row
MAX_NAMES = 20_000
HASH = re.compile(r"[0-9a-f]{64}")

_names: dict[str, str] = {}
_lock = threading.Lock()


class Offer(NamedTuple):
    """A tool in a turn. `hash` is empty for one that was not offered; `places` are its numbers in the answer."""

    name: Markup
    hash: str
    places: tuple[int, ...]


class Offered(NamedTuple):
    """What an agent's turn was offered; `called` in the order of the calls."""

    agent: str
    called: tuple[Offer, ...]
    every: tuple[Offer, ...]
    left_out: int


def learn(names: Mapping[str, str]) -> None:
    """Take over the names of schemas."""
    with _lock:
        if len(_names) + len(names) > MAX_NAMES:
            _names.clear()
        _names.update(names)


def unknown(hashes: Iterable[str]) -> set[str]:
    """Answer those whose names are still to be learned."""
    return {one for one in hashes if one not in _names}


def learned() -> int:
    """Answer how many names are known: what was drawn with fewer may be drawn anew."""
    return len(_names)


def hashes_of(tools: object) -> list[str]:
    """Answer the hashes that a turn tells; anything else in their place is left out."""
    found = tools if isinstance(tools, list) else []
    return [one for one in found[:1000] if isinstance(one, str) and HASH.fullmatch(one)]


def of_turn(read: faces.Read) -> Offered | None:
    """Answer what a turn of ours was offered; None of a turn that is told from outside."""
    if read.event.run is None:
        return None
    tools, calls = hashes_of(read.body.get("tools")), _calls(read.body.get("called"))
    offers = [Offer(_name(one), one, tuple(n for n, (_, hash) in calls if hash == one)) for one in tools]
    strays = [Offer(richtext.inline(name[:200]), "", (n,)) for n, (name, hash) in calls if hash not in tools]
    called = sorted([*(one for one in offers if one.places), *strays], key=lambda one: one.places)
    return Offered(read.said.agent or "", tuple(called[:MOST]), tuple(offers[:MOST]), max(0, len(offers) - MOST))


def _calls(told: object) -> list[tuple[int, tuple[str, str]]]:
    calls = [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
    named = [(faces.line(one.get("name")), faces.line(one.get("schema"))) for one in calls[:MOST]]
    return list(enumerate(named, start=1))


def _name(hash: str) -> Markup:
    return richtext.inline(_names.get(hash, f"schema {hash[:8]}")[:200])
