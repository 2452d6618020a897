"""What the audit log is filtered by: read from an address and written back to one. No query.

Filters combine: each must hold. Of several values for one name (`verb=decide&verb=speak_as`) any may. A target, a
conversation or a name that ends with `*` is a beginning.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from conversations.envelopes import fit
from conversations.errors import Invalid
from conversations.toolcalls.filters import LAST, InAddress, Params, micros, moment

OUTCOMES = ("done", "refused")
MANY = {"who": 160, "acting_as": 200, "verb": 60}  # characters of a value, as the column has them
MOST = 20  # values of one name
LONGEST = 300  # characters of a target
WORDS = 200  # characters of the words in a reason
BEGINNING = "*"


@dataclass(frozen=True, slots=True)
class Filters(InAddress):
    """The filters in force, named as in the address. Times are µs UTC."""

    many: ClassVar[Collection[str]] = MANY

    who: tuple[str, ...] = ()  # principals
    acting_as: tuple[str, ...] = ()
    verb: tuple[str, ...] = ()
    outcome: str = ""
    target: str = ""
    conversation: str = ""  # what was done to it, or within it
    q: str = ""  # words in the reason, in any case, all of them
    last: str = ""
    since: int | None = None
    until: int | None = None

    @property
    def words(self) -> list[str]:
        """What a reason must hold, each."""
        return self.q.casefold().split()

    def begins(self, now: datetime) -> int | None:
        """Answer from when on, in µs: the later of `from` and `last` before now."""
        at = micros(now - LAST[self.last][1]) if self.last else None
        return max((one for one in (self.since, at) if one is not None), default=None)


def read(params: Params) -> tuple[Filters, dict[str, str]]:
    """Read filters and, by their names in the address, what is wrong with those that cannot be read."""
    wrong: dict[str, str] = {}
    said: dict[str, Any] = {}
    for name in MANY:
        try:
            said[name] = _values(name, params.get(name, ()))
        except Invalid as error:
            wrong[name] = error.message
    for name, (field, reader) in _READERS.items():
        text = (params.get(name) or [""])[-1].strip()
        try:
            said |= {field: reader(text)} if text else {}
        except Invalid as error:
            wrong[name] = error.message
    found = Filters(**said)
    if found.since is not None and found.until is not None and found.since > found.until:
        wrong["to"] = "ends before it begins"
    return found, wrong


def strictly(params: Params) -> Filters:
    """Read filters. Raises `Invalid` that names the first wrong one."""
    found, wrong = read(params)
    for name, message in wrong.items():
        raise Invalid(message, field=name)
    return found


def now() -> datetime:
    """Answer from when `last` counts back."""
    return datetime.now(UTC)


def _values(name: str, texts: Sequence[str]) -> tuple[str, ...]:
    fits = (fit(text.strip()) for text in texts if text.strip())
    values = tuple(dict.fromkeys(_principal(text) if name == "who" else text for text in fits))
    if len(values) > MOST:
        raise Invalid(f"expected {MOST} values at most; got {len(values)}")
    if any(len(value) > MANY[name] for value in values):
        raise Invalid(f"expected {MANY[name]} characters at most")
    return values


def _principal(text: str) -> str:
    """A bare name is a person's, but for the system, which has no name."""
    return text if ":" in text or text == "system" else f"user:{text}"


def _one_of(*known: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise Invalid(f"expected {' or '.join(known)}; got {text[:20]!r}")
        return text

    return read


def _short(most: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        if len(text) > most:
            raise Invalid(f"expected {most} characters at most; got {len(text):,}")
        return fit(text)

    return read


_READERS: dict[str, tuple[str, Callable[[str], Any]]] = {  # name in the address → field, reader
    "from": ("since", moment),
    "to": ("until", moment),
    "last": ("last", _one_of(*LAST)),
    "outcome": ("outcome", _one_of(*OUTCOMES)),
    "target": ("target", _short(LONGEST)),
    "conversation": ("conversation", _short(LONGEST)),
    "q": ("q", _short(WORDS)),
}
