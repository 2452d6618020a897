"""How participants are drawn: the kind, letters and hue of a mark, and the principal behind the name. Used by drawing
and pages.

Appearance only: a name never becomes authority here (law G). Authority is the principal's, shown beside the name.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from conversations.core import hidden_characters
from conversations.events.payload import MAX_KEY
from conversations.rendering import hue_slots, richtext
from conversations.rendering.hue_slots import HUES

Kind = Literal["person", "agent", "operator", "system", "tool"]

EMPTY: Mapping[str, int] = MappingProxyType({})
_PREFIXES: dict[str, Kind] = {
    "agent": "agent",
    "user": "person",
    "person": "person",
    "human": "person",
    "token": "person",
}
_BARE: dict[str, Kind] = {"assistant": "agent", "system": "system", "tool": "system", "": "system"}
_stored: dict[str, int] = {}
_hues_here: ContextVar[Mapping[str, int]] = ContextVar("hues in the conversation that is drawn", default=EMPTY)
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class ParticipantMark(NamedTuple):
    """One participant, ready to draw. `name` is HTML, `title` plain text escaped for an attribute."""

    kind: Kind
    name: str
    title: str
    letters: str
    hue: int | None
    key: str  # the sender's own text, fit for an attribute: equal keys are one voice
    pattern: int = 0  # tells it from others with its hue where there are more agents than hues; 0: none

    @property
    def symbol_fields(self) -> dict[str, Any]:
        """Return what a script needs to draw its symbol (`static/js/options.js`)."""
        return {"kind": self.kind, "letters": self.letters, "hue": self.hue, "pattern": self.pattern}


class Attribution(NamedTuple):
    """What the principal adds to a name: a person behind it, a warning, or a note."""

    by: str = ""  # a person who spoke under this name
    unverified: bool = False
    via: str = ""
    title: str = ""


def take_hues(hues: Mapping[str, int]) -> None:
    """Let marks use these slots until the surrounding `in_conversation` ends."""
    _hues_here.set(hues)


@contextmanager
def in_conversation(hues: Mapping[str, int]) -> Iterator[None]:
    """Let marks drawn inside the block use these slots, by displayed name (`conversation_hues`)."""
    token = _hues_here.set(hues)
    try:
        yield
    finally:
        _hues_here.reset(token)


def distinct_hues(names: Iterable[str]) -> dict[str, int]:
    """Return a hue for each agent: its own, else the free one farthest from those before it."""
    return {name: hue_slots.hue_of(slot) for name, slot in distinct_slots(names).items()}


def distinct_slots(names: Iterable[str]) -> dict[str, int]:
    """Return a hue with a pattern for each agent (`hue_slots`), all different as long as slots are free."""
    return hue_slots.slots(names, hue)


def mark_for(sender: str, principal: str = "") -> ParticipantMark:
    """Return the mark of a sender or recipient. Only `user:*` speaking as themselves is an operator; a claim of it is a
    person. A long name is cut as the record's participants are."""
    return _here(_mark_for(sender[:MAX_KEY], principal))


def mark_among(name: str, principals: Iterable[str]) -> ParticipantMark:
    """Return the mark of a participant where nothing says who stands behind each name: an operator's if it is one of
    these principals."""
    return mark_for(name, name if name in principals else "")


def mark_for_name(name: str, kind: str = "agent") -> ParticipantMark:
    """Return the mark of a bare name whose kind is known: agent, person, operator, system; anything else is a
    person."""
    return _here(_mark_for_name(name[: MAX_KEY - len("agent:")] if kind == "agent" else name[:MAX_KEY], kind))


def _here(mark: ParticipantMark) -> ParticipantMark:
    slot = _hues_here.get().get(mark.title) if mark.kind == "agent" else None
    if slot is None or slot == mark.hue:
        return mark
    return mark._replace(hue=hue_slots.hue_of(slot), pattern=hue_slots.pattern_of(slot))


@lru_cache(maxsize=4096)
def _mark_for(sender: str, principal: str) -> ParticipantMark:
    kind, name = _read(sender)
    if principal.startswith("user:") and principal == sender:
        kind = "operator"
    return _mark_for_name(name, kind)._replace(key=hidden_characters.spelled_out(sender))


@lru_cache(maxsize=4096)
def _mark_for_name(name: str, kind: str) -> ParticipantMark:
    mark_kind: Kind = next((candidate for candidate in get_args(Kind) if candidate == kind), "person")
    drawn, title = richtext.inline(name or "unknown"), hidden_characters.spelled_out(name or "unknown")
    return ParticipantMark(
        mark_kind, drawn, title, letters(name, mark_kind), _hue(mark_kind, name), hidden_characters.spelled_out(name)
    )


@lru_cache(maxsize=4096)
def behind(principal: str, sender: str) -> Attribution:
    """Return what the principal adds: `user:*` behind another name, the bus, a token, an import."""
    kind, _, name = principal.partition(":")
    if kind == "user" and principal != sender:
        return Attribution(by=name)
    if kind == "bus":
        return Attribution(unverified=True, title="Received over the bus, where any sender can claim any name")
    if kind == "token":
        return Attribution(via=f"via token {name}")
    if kind == "import":
        return Attribution(via="imported", title=f"Imported by {name}")
    return Attribution()


def letters(name: str, kind: Kind = "agent") -> str:
    """Make two letters: the initials of the first two words, else the beginning of the one."""
    parts = [part for word in _WORD.findall(name) for part in _HUMP.split(word)][:2]
    if not parts:
        return "?"
    initials = "".join(word[0] for word in parts).upper() if len(parts) > 1 else parts[0][:1].upper() + parts[0][1:2]
    return initials.upper() if kind == "operator" else initials


def remember_hues(hues: Mapping[str, int]) -> bool:
    """Take over the hues (1 to 10) stored with agents; return whether any is another than before."""
    if hues == _stored:
        return False
    _stored.clear()
    _stored.update(hues)
    _mark_for.cache_clear()
    _mark_for_name.cache_clear()
    return True


def hue(name: str) -> int:
    """Return the hue stored with an agent of this name, else by it one of those that no agent has stored, the same
    everywhere."""
    if stored := _stored.get(name):
        return stored
    taken = set(_stored.values())
    free = [number for number in range(1, HUES + 1) if number not in taken] or range(1, HUES + 1)
    return free[zlib.crc32(name.encode("utf-8", "replace")) % len(free)]


def _hue(kind: Kind, name: str) -> int | None:
    return hue(name) if kind == "agent" and name else None


def _read(sender: str) -> tuple[Kind, str]:
    prefix, mark, rest = sender.partition(":")
    if mark and rest and prefix in _PREFIXES:
        return _PREFIXES[prefix], rest
    return _BARE.get(sender.lower(), "person"), sender
