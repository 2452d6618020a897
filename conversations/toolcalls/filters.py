"""What a list of tool calls is filtered by: read from an address and written back to one. No query.

Filters combine: each must hold. Of several values for one name (`status=failed&status=timeout`) any may.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar, Self

from django.utils.http import urlencode

from conversations.envelopes import fit, short_call_id
from conversations.errors import Invalid
from conversations.search import query

STATUSES = (
    *("called", "waiting", "approved", "executing", "done"),
    *("failed", "timeout", "rejected", "blocked", "unknown"),
)
LAST = {
    "15m": ("15 minutes", timedelta(minutes=15)),
    "1h": ("hour", timedelta(hours=1)),
    "24h": ("24 hours", timedelta(hours=24)),
    "7d": ("7 days", timedelta(days=7)),
    "30d": ("30 days", timedelta(days=30)),
}
WHERE = {"": "in arguments, output and error", "around": "also in messages around the call"}
MOST = 20  # values of one name
LONGEST = 401  # characters of a value: a qualified name
NUMBERS = {"min_ms": 1e12, "max_ms": 1e12, "min_bytes": 2.0**53, "max_bytes": 2.0**53}
MANY = ("agent", "tool", "qualified", "origin", "server", "status", "by")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Params = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class InAddress:
    """Filters as they stand in an address; those of the audit log, too. `many`: the names with several values."""

    many: ClassVar[Collection[str]] = ()

    def __bool__(self) -> bool:
        """Tell whether anything is filtered."""
        return self != type(self)()

    def without(self, *names: str) -> Self:
        """Answer the others."""
        empty = type(self)()
        return replace(self, **{name: getattr(empty, name) for name in names})

    @property
    def query(self) -> str:
        """The address's query, without the question mark; the same filters have the same one."""
        return urlencode(self.pairs)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Names and values as they stand in the address."""
        said: list[tuple[str, str]] = []
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name in self.many:
                said += [(one.name, text) for text in value]
            elif one.name in ("since", "until"):
                said += [({"since": "from", "until": "to"}[one.name], iso(value))] if value is not None else []
            elif value is not None and value != "":
                said.append((one.name, f"{value:.15g}" if isinstance(value, float) else value))
        return said


@dataclass(frozen=True, slots=True)
class Filters(InAddress):
    """The filters in force, named as in the address. Times are µs UTC, when the call reached the record."""

    many: ClassVar[Collection[str]] = MANY

    agent: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()  # the public name
    qualified: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    by: tuple[str, ...] = ()  # principals who decided
    replayed: str = ""  # yes, no
    q: str = ""  # words, "phrases", prefix*
    where: str = ""
    conversation: str = ""
    run: str = ""
    call_id: str = ""
    last: str = ""
    since: int | None = None
    until: int | None = None
    min_ms: float | None = None
    max_ms: float | None = None
    min_bytes: float | None = None
    max_bytes: float | None = None

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
        text = (params.get(name) or [""])[-1]
        text = text if name == "call_id" else text.strip()
        try:
            said |= {field: reader(text)} if text else {}
        except Invalid as error:
            wrong[name] = error.message
    found = Filters(**said)
    return found, wrong | _crossed(found)


def strictly(params: Params) -> Filters:
    """Read filters. Raises `Invalid` that names the first wrong one."""
    found, wrong = read(params)
    for name, message in wrong.items():
        raise Invalid(message, field=name)
    return found


def moment(text: str) -> int:
    """Read ISO 8601, without a zone UTC, as µs. Raises `Invalid`."""
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        if not 1970 <= at.astimezone(UTC).year <= 9999:
            raise ValueError
    except (ValueError, OverflowError):
        raise Invalid(f"expected a day and time such as 2026-11-22T08:30Z; got {text[:40]!r}") from None
    return micros(at)


def micros(at: datetime) -> int:
    """Answer µs since 1970, exactly."""
    return (at - EPOCH) // timedelta(microseconds=1)


def iso(at: int) -> str:
    """Write µs as ISO 8601 in UTC, no longer than it has to be."""
    text = (EPOCH + timedelta(microseconds=at)).isoformat().replace("+00:00", "")
    return f"{text.removesuffix(':00')}Z"


def _values(name: str, texts: Sequence[str]) -> tuple[str, ...]:
    fits = (fit(text) for text in texts if text)
    values = tuple(dict.fromkeys(_principal(text) if name == "by" else text for text in fits))
    if len(values) > MOST:
        raise Invalid(f"expected {MOST} values at most; got {len(values)}")
    if any(len(value) > LONGEST for value in values):
        raise Invalid(f"expected {LONGEST} characters at most")
    if name == "status" and (unknown := [value for value in values if value not in STATUSES]):
        raise Invalid(f"no status {unknown[0][:40]!r}; expected {', '.join(STATUSES)}")
    return values


def _number(most: float, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        raise Invalid(f"expected a number from 0 on; got {text[:20]!r}")
    return value


def _one_of(known: Sequence[str], text: str) -> str:
    if text not in known:
        raise Invalid(f"expected {' or '.join(known)}; got {text[:20]!r}")
    return text


def _short(most: int, text: str) -> str:
    if len(text) > most:
        raise Invalid(f"expected {most} characters at most; got {len(text):,}")
    return fit(text)


def _words(text: str) -> str:
    """Raises `Invalid` for more words than the search takes."""
    query.read(text)
    return fit(text[:LONGEST])


def _principal(text: str) -> str:
    """A bare name is a person's."""
    return text if ":" in text else f"user:{text}"


def _crossed(found: Filters) -> dict[str, str]:
    """Say which upper ends lie below their lower ones."""
    ends = (
        ("max_ms", found.min_ms, found.max_ms, "is less than the least"),
        ("max_bytes", found.min_bytes, found.max_bytes, "is less than the least"),
        ("to", found.since, found.until, "ends before it begins"),
    )
    return {name: words for name, least, most, words in ends if least is not None and most is not None and least > most}


_READERS: dict[str, tuple[str, Callable[[str], Any]]] = {  # name in the address → field, reader
    **{name: (name, partial(_number, most)) for name, most in NUMBERS.items()},
    "from": ("since", moment),
    "to": ("until", moment),
    "last": ("last", partial(_one_of, tuple(LAST))),
    "replayed": ("replayed", partial(_one_of, ("yes", "no"))),
    "where": ("where", partial(_one_of, ("around",))),
    "q": ("q", _words),
    "conversation": ("conversation", partial(_short, 200)),
    "run": ("run", partial(_short, 64)),
    "call_id": ("call_id", lambda text: short_call_id(fit(text))),
}
