"""Filters of a list in its address: parsed, written back, and the errors in them. It runs no query.

Filters combine: each must match. Of several values for one name (`status=failed&status=timeout`) any may match.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import Field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NamedTuple, Self

from django.utils.http import urlencode

from conversations.core.errors import Invalid
from conversations.core.micros import to_datetime, to_micros
from conversations.events.payload import clean_text
from conversations.listing.page import read_cursor

MAX_VALUES = 20  # of one name
TIME_SPANS = {
    "15m": ("15 minutes", timedelta(minutes=15)),
    "1h": ("hour", timedelta(hours=1)),
    "24h": ("24 hours", timedelta(hours=24)),
    "7d": ("7 days", timedelta(days=7)),
    "30d": ("30 days", timedelta(days=30)),
}
MINUTE = 60_000_000  # µs
BEGINS = "~"  # in a cursor: between the position and the moment at which `last` begins
_TO_THE_MINUTE = re.compile(r"^[^:]*[T ]\d\d:\d\d(Z|[+-]\d\d:?\d\d)?$", re.IGNORECASE)
FIELDS = {"from": "since", "to": "until"}  # names in the address → fields, where they differ
NAMES = {field: name for name, field in FIELDS.items()}

Params = Mapping[str, Sequence[str]]
Reader = Callable[[str], Any]  # raises `Invalid`


class ValuesReader(NamedTuple):
    """How each value of a name is parsed. `max_length` in characters; `choices`: the only values allowed, if
    limited."""

    max_length: int
    read: Callable[[str], str] = str
    choices: tuple[str, ...] = ()


class UrlFilters:
    """Filters in force. Each list declares its own as a frozen dataclass whose fields are named and ordered as in the
    address.

    `last`, `since` and `until` are among the fields; times are µs UTC.
    """

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    many: ClassVar[Mapping[str, ValuesReader]]  # by name in the address, those with several values
    single: ClassVar[Mapping[str, Reader]]  # and those with one
    verbatim: ClassVar[Collection[str]] = ()  # names whose values keep the spaces around them
    ranges: ClassVar[Sequence[tuple[str, str, str, str]]] = (("to", "since", "until", "must not be before From"),)
    """name in the address, lower and upper field, and what is wrong where the upper one is less"""

    last: str
    since: int | None
    until: int | None

    @classmethod
    def read(cls, params: Params) -> tuple[Self, dict[str, str]]:
        """Parse filters; return them with the errors of the invalid ones, by name in the address."""
        values: dict[str, Any] = {}
        wrong: dict[str, str] = {}
        readers: dict[str, ValuesReader | Reader] = {**cls.many, **cls.single}
        for name, reader in readers.items():
            texts = params.get(name, ())
            texts = texts if name in cls.verbatim else [text.strip() for text in texts]
            try:
                values |= _read_values(name, texts, reader)
            except Invalid as error:
                wrong[name] = error.message
        filters = cls(**values)
        return filters, wrong | dict(filters._crossed())

    @classmethod
    def parse_strict(cls, params: Params) -> Self:
        """Parse filters. Raises Invalid that names the first invalid one."""
        filters, wrong = cls.read(params)
        for name, message in wrong.items():
            raise Invalid(message, field=name)
        return filters

    def __bool__(self) -> bool:
        """Return whether any filter is set."""
        return self != type(self)()

    def without(self, *names: str) -> Self:
        """Return the filters without those of these names."""
        empty = type(self)()
        return replace(self, **{name: getattr(empty, name) for name in names})

    def begins(self, now: datetime) -> int | None:
        """Return the start of the range, µs UTC: the later of `from` and `last` before now; None without either."""
        at = to_micros(now - TIME_SPANS[self.last][1]) if self.last else None
        return max((moment for moment in (self.since, at) if moment is not None), default=None)

    def fixed(self, begins: int | None = None) -> Self:
        """Return the filters with the moment at which `last` begins in place of it, by default counted from now: pages
        that are read one after the other must not lose their oldest rows to the clock."""
        if not self.last:
            return self
        return replace(self, since=self.begins(datetime.now(UTC)) if begins is None else begins, last="")

    def of_page(self, cursor: str) -> tuple[Self, str]:
        """Return the fixed filters of the page after `cursor`, and its position. Raises Invalid."""
        position, mark, begins = cursor.partition(BEGINS)
        moment = read_cursor(begins, 1) if mark else None
        if mark and not (position and moment):
            raise Invalid("must be a cursor from an earlier response", field="before")
        return self.fixed(moment[0] if moment else None), position

    def cursor(self, after: object, begins: int | None) -> str | None:
        """Return the cursor for the rows after a position, None at the end. `begins`: `since` of this page's fixed
        filters."""
        if after is None:
            return None
        return f"{after}{BEGINS}{begins}" if self.last else str(after)

    @property
    def query(self) -> str:
        """Return the query string without the question mark; equal filters have equal strings."""
        return urlencode(self.pairs)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the filters as names and values, in the order of the address."""
        pairs: list[tuple[str, str]] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in self.many:
                pairs += [(field.name, text) for text in value]
            elif field.name in NAMES:
                write = end_to_iso if field.name == "until" else to_iso
                pairs += [(NAMES[field.name], write(value))] if value is not None else []
            elif value is not None and value != "":
                pairs.append((field.name, f"{value:.15g}" if isinstance(value, float) else value))
        return pairs

    def _crossed(self) -> Iterator[tuple[str, str]]:
        for name, lower, upper, message in self.ranges:
            least, most = getattr(self, lower), getattr(self, upper)
            if least is not None and most is not None and least > most:
                yield name, message


def _read_values(name: str, texts: Sequence[str], reader: ValuesReader | Reader) -> dict[str, Any]:
    if isinstance(reader, ValuesReader):
        return {name: _read_many(name, texts, reader)}
    return {FIELDS.get(name, name): reader(text) for text in texts[-1:] if text}


def _read_many(name: str, texts: Sequence[str], reader: ValuesReader) -> tuple[str, ...]:
    values = tuple(dict.fromkeys(reader.read(clean_text(text)) for text in texts if text))
    if len(values) > MAX_VALUES:
        raise Invalid(f"must have at most {MAX_VALUES} values; got {len(values)}")
    if any(len(value) > reader.max_length for value in values):
        raise Invalid(f"must be at most {reader.max_length} characters")
    if reader.choices and (unknown := [value for value in values if value not in reader.choices]):
        raise Invalid(f"must be one of {', '.join(reader.choices)}; got {unknown[0][:40]!r}")
    return values


def person(text: str) -> str:
    """Parse a principal; a bare name is a person's."""
    return text if ":" in text else f"user:{text}"


def one_of(*choices: str) -> Reader:
    """Return a reader that accepts only these values."""

    def read(text: str) -> str:
        if text not in choices:
            raise Invalid(f"must be {' or '.join(choices)}; got {text[:20]!r}")
        return text

    return read


def short(max_length: int) -> Reader:
    """Return a reader that accepts texts of at most so many characters."""

    def read(text: str) -> str:
        if len(text) > max_length:
            raise Invalid(f"must be at most {max_length} characters; got {len(text):,}")
        return clean_text(text)

    return read


def parse_time(text: str) -> int:
    """Parse ISO 8601 as µs UTC; without a zone it is UTC. Raises Invalid."""
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        if not 1970 <= at.astimezone(UTC).year <= 9999:
            raise ValueError
    except (ValueError, OverflowError):
        raise Invalid(f"must be a date and time such as 2026-11-22T08:30Z; got {text[:40]!r}") from None
    return to_micros(at)


def parse_end(text: str) -> int:
    """Parse as `parse_time` does the last moment of a range: a time without seconds includes its whole minute."""
    return parse_time(text) + (MINUTE - 1 if _TO_THE_MINUTE.search(text) else 0)


def end_to_iso(at: int) -> str:
    """Write µs UTC as `parse_end` reads it: with seconds, unless it is the last moment of a minute."""
    if (at + 1) % MINUTE == 0:
        return to_iso(at + 1 - MINUTE)
    return to_datetime(at).isoformat().replace("+00:00", "Z")


def to_iso(at: int) -> str:
    """Write µs UTC as ISO 8601, no longer than necessary."""
    text = to_datetime(at).isoformat().replace("+00:00", "")
    return f"{text.removesuffix(':00')}Z"


TIMES: dict[str, Reader] = {"from": parse_time, "to": parse_end, "last": one_of(*TIME_SPANS)}
