"""Who is drawn: the kind, letters and hue of a mark, and what stands behind the name. Read by drawing and pages.

Looks only: a name never becomes authority here (law G). That is the principal's, told beside the name.
"""

import re
import zlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple

from conversations.fragments import hidden, richtext

Kind = Literal["person", "agent", "operator", "system"]

KINDS: tuple[Kind, ...] = ("agent", "person", "operator", "system")
HUES = 10  # the palette's agents (static/css/tokens.css)
_PREFIXES: dict[str, Kind] = {
    "agent": "agent",
    "user": "person",
    "person": "person",
    "human": "person",
    "token": "person",
}
_BARE: dict[str, Kind] = {"assistant": "agent", "system": "system", "tool": "system", "": "system"}
_stored: dict[str, int] = {}
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Who(NamedTuple):
    """One voice, ready to draw. `name` is HTML, `title` plain text fit for an attribute."""

    kind: Kind
    name: str
    title: str
    letters: str
    hue: int | None
    key: str  # the sender's own text, fit for an attribute: equal keys are one voice


class Behind(NamedTuple):
    """What the principal adds to a name: a person behind it, a warning, or a quiet word."""

    by: str = ""  # a person who spoke under this name
    unverified: bool = False
    via: str = ""
    title: str = ""


@lru_cache(maxsize=4096)
def who(sender: str, principal: str = "") -> Who:
    """Draw a sender or recipient. Only `user:*` speaking as themselves is an operator; a claim of it is a person."""
    kind, name = _read(sender)
    if principal.startswith("user:") and principal == sender:
        kind = "operator"
    return of_name(name, kind)._replace(key=hidden.spell(sender))


@lru_cache(maxsize=4096)
def of_name(name: str, kind: str = "agent") -> Who:
    """Draw a bare name whose kind the record knows: agent, person, operator, system; anything else is a person."""
    known: Kind = next((one for one in KINDS if one == kind), "person")
    drawn, title = richtext.inline(name or "unknown"), hidden.spell(name or "unknown")
    return Who(known, drawn, title, letters(name, known), _hue(known, name), hidden.spell(name))


@lru_cache(maxsize=4096)
def behind(principal: str, sender: str) -> Behind:
    """Say what the principal adds: `user:*` behind another name, the bus, a token, an import."""
    kind, _, name = principal.partition(":")
    if kind == "user" and principal != sender:
        return Behind(by=name)
    if kind == "bus":
        return Behind(unverified=True, title="It came over the bus, where anybody can claim any name")
    if kind == "token":
        return Behind(via=f"via token {name}")
    if kind == "import":
        return Behind(via="imported", title=f"Imported by {name}")
    return Behind()


def letters(name: str, kind: Kind = "agent") -> str:
    """Make two letters: the initials of the first two words, else the beginning of the one."""
    words = [part for word in _WORD.findall(name) for part in _HUMP.split(word)][:2]
    if not words:
        return "?"
    made = "".join(word[0] for word in words).upper() if len(words) > 1 else words[0][:1].upper() + words[0][1:2]
    return made.upper() if kind == "operator" else made


def learn_hues(hues: Mapping[str, int]) -> bool:
    """Take over the hues (1 to 10) stored with agents; answer whether any is another than before."""
    if hues == _stored:
        return False
    _stored.clear()
    _stored.update(hues)
    who.cache_clear()
    of_name.cache_clear()
    return True


def hue(name: str) -> int:
    """Answer the hue stored with an agent of this name, else one of ten by it, the same everywhere and always."""
    return _stored.get(name) or zlib.crc32(name.encode("utf-8", "replace")) % HUES + 1


def _hue(kind: Kind, name: str) -> int | None:
    return hue(name) if kind == "agent" and name else None


def _read(sender: str) -> tuple[Kind, str]:
    prefix, mark, rest = sender.partition(":")
    if mark and rest and prefix in _PREFIXES:
        return _PREFIXES[prefix], rest
    return _BARE.get(sender.lower(), "person"), sender
