"""Entries as they are drawn, and as programs get them. What looks like a key or a password is covered in both."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode
from markupsafe import Markup

from conversations import hues, masking
from conversations.auditlog import targets
from conversations.auditlog.listing import Entry
from conversations.fragments import hidden, richtext
from conversations.fragments.who import Who, who
from conversations.toolcalls.filters import EPOCH

SHORT = 200  # characters of a reason or a target in a row; all of them are in its details
END_US = 253_402_300_800_000_000  # the year 10000

Json = dict[str, Any]


@dataclass(frozen=True)
class Fact:
    """One line of an entry's details. `href`: where it leads, or empty."""

    name: str
    words: Markup
    href: str = ""


@dataclass(frozen=True)
class Row:
    """One entry of a list."""

    entry: Entry
    hrefs: Mapping[str, str] = field(repr=False)

    @property
    def at(self) -> datetime | None:
        """When it was done; None for what is no time."""
        return moment(self.entry.at)

    @property
    def href(self) -> str:
        """Its own address."""
        return reverse("audit-entry", args=[self.entry.seq])

    @property
    def who(self) -> Who:
        """Who did it."""
        return who(self.entry.principal, self.entry.principal)

    @property
    def kind(self) -> str:
        """What the principal is, where it is no person."""
        kind, _, name = self.entry.principal.partition(":")
        return kind if name and kind != "user" else ""

    @property
    def acting_as(self) -> Who | None:
        """Whom they spoke as."""
        return who(self.entry.acting_as, self.entry.principal) if self.entry.acting_as else None

    @property
    def verb(self) -> Markup:
        """What was done, or would have been."""
        return richtext.inline(self.entry.verb.replace("_", " "))

    @property
    def target(self) -> Markup:
        """To what."""
        return richtext.inline(self.entry.target[:SHORT])

    @property
    def target_href(self) -> str:
        """Where that is; empty when it is gone, or nowhere."""
        entry = self.entry
        href = self.hrefs.get(entry.target) or targets.of_export(entry.target, self.correlation)
        return targets.event(href, self.correlation.get("seq")) if entry.target.startswith("conversation:") else href

    @property
    def reason(self) -> Markup:
        """Why, in one line."""
        return richtext.inline(" ".join(_reason(self.entry).split())[:SHORT])

    @property
    def is_refused(self) -> bool:
        """Tell whether it was not done."""
        return self.entry.outcome != "done"

    @property
    def outcome(self) -> str:
        """What came of it, fit for text."""
        return hidden.spell(self.entry.outcome)

    @cached_property
    def correlation(self) -> Json:
        """What it was part of."""
        return _correlation(self.entry)

    @property
    def facts(self) -> list[Fact]:
        """Everything that the row does not tell in full."""
        entry, reason = self.entry, _reason(self.entry)
        told = [Fact("At", richtext.inline(f"{self.at:%Y-%m-%d %H:%M:%S.%f} UTC" if self.at else str(entry.at)))]
        told += [_found("Who", entry.principal, "who")]
        told += [_found("Acting as", entry.acting_as, "acting_as")] if entry.acting_as else []
        told += [_found("Did", entry.verb, "verb"), _found("To", entry.target, "target")]
        told += [Fact("Why", richtext.inline(reason))] if reason else []
        return told + [self._place(name, value) for name, value in self.correlation.items()]

    @property
    def digests(self) -> list[tuple[str, str]]:
        """The hashes, each with what it is of."""
        entry = self.entry
        states = [
            (f"State {when}", value) for when, value in (("before", entry.before), ("after", entry.after)) if value
        ]
        chain = [("Previous entry", entry.prev_hash), ("This entry", entry.hash)]
        return [(name, hidden.spell(value)) for name, value in (*states, *chain)]

    def _place(self, name: str, value: Any) -> Fact:
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        href = self.hrefs.get(_named(name, value), "")
        if name == "conversation" and isinstance(value, str):
            href = targets.event(href, self.correlation.get("seq")) if href else ""
        return Fact(hidden.spell(name.replace("_", " ").capitalize()), richtext.inline(words), href)


def rows(entries: Sequence[Entry], may: Collection[str]) -> list[Row]:
    """Look for what entries are about; `may` are the rights of who looks."""
    hues.refresh()
    named = {entry.target for entry in entries}
    for entry in entries:
        named |= {_named(name, value) for name, value in _correlation(entry).items()}
    found = targets.hrefs(named, may)
    return [Row(entry, found) for entry in entries]


def moment(at: int) -> datetime | None:
    """Read µs UTC; None for what is outside of the years there are: an entry may have been tampered with."""
    return EPOCH + timedelta(microseconds=at) if 0 <= at < END_US else None


def item(entry: Entry) -> Json:
    """Answer an entry for programs (design 3.6)."""
    at = moment(entry.at)
    return {
        "seq": entry.seq, "at": at.isoformat() if at else None, "principal": entry.principal,
        "acting_as": entry.acting_as or None, "verb": entry.verb, "target": entry.target, "outcome": entry.outcome,
        "reason": _reason(entry), "correlation": _correlation(entry), "before": entry.before or None,
        "after": entry.after or None, "prev_hash": entry.prev_hash, "hash": entry.hash,
        "url": reverse("audit-entry", args=[entry.seq]),
    }  # fmt: skip


def _found(name: str, value: str, filter_: str) -> Fact:
    """Lead to everything that has the same."""
    return Fact(name, richtext.inline(value), f"{reverse('audit')}?{urlencode({filter_: value})}")


def _named(name: str, value: Any) -> str:
    """Name a fact as a target would be, where it could be one."""
    return f"{targets.PLACES[name]}:{value}" if name in targets.PLACES and isinstance(value, str) else ""


def _reason(entry: Entry) -> str:
    return masking.mask(entry.reason)


def _correlation(entry: Entry) -> Json:
    """Read what an entry was part of; what cannot be read stays a text."""
    if not entry.correlation:
        return {}
    try:
        told = json.loads(entry.correlation)
        return dict(masking.covered(told if isinstance(told, dict) else {"text": entry.correlation}))
    except (ValueError, RecursionError):
        return {"text": masking.mask(entry.correlation)}
