"""Entries as pages draw them and as the API returns them. What looks like a key or a password is masked in both."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode
from markupsafe import Markup

from conversations.access.audit import entry_facts
from conversations.access.audit.listing import target_links
from conversations.access.audit.listing.query import EntryRow
from conversations.access.audit.listing.target_links import TargetPlace
from conversations.core import hidden_characters, secret_masking
from conversations.core.json_values import as_text
from conversations.core.micros import YEAR_10000, to_datetime
from conversations.events import recorded_arguments
from conversations.models import Approval
from conversations.models.approval import DECISION_WORDS
from conversations.rendering import agent_colors, diff_rows, richtext
from conversations.rendering.participant_marks import ParticipantMark, mark_for

SHORT = 200  # characters of a reason or a target in a row; all of them are in its details

Json = dict[str, Any]


@dataclass(frozen=True)
class Fact:
    """One line of an entry's details. `href`: its link, or empty."""

    name: str
    words: Markup
    href: str = ""


@dataclass(frozen=True)
class AuditRow:
    """One entry of a list."""

    entry: EntryRow
    correlation: Json
    """what it was part of"""
    places: Mapping[str, TargetPlace] = field(repr=False)
    changes: diff_rows.RenderedDiff | None = field(default=None, repr=False)
    """what a person changed of a call's arguments, where the entry is such a decision and the record still has it"""
    message: str = field(default="", repr=False)
    """what a decision said to the agent, where the record still has it"""
    is_revealed: bool = False
    """whether what looks like a secret is shown"""

    @property
    def at(self) -> datetime | None:
        """Return when it was done; None for an impossible time."""
        return datetime_of(self.entry.at)

    @property
    def href(self) -> str:
        """Return the entry's own address."""
        return _entry_address().replace("0", str(self.entry.seq))

    @property
    def who(self) -> ParticipantMark:
        """Return the actor."""
        return mark_for(self.entry.principal, self.entry.principal)

    @property
    def kind(self) -> str:
        """Return the kind of the principal if it is not a person."""
        kind, _, name = self.entry.principal.partition(":")
        return kind if name and kind != "user" else ""

    @property
    def acting_as(self) -> ParticipantMark | None:
        """Return whom they spoke as; None if as themselves."""
        return mark_for(self.entry.acting_as, self.entry.principal) if self.entry.acting_as else None

    @property
    def verb(self) -> Markup:
        """Return what was done or attempted."""
        return richtext.inline(self.entry.verb.replace("_", " "))

    @property
    def detail(self) -> Markup:
        """Return which decision, event or format it was; empty for actions without one."""
        known = self.correlation
        match self.entry.verb:
            case "decide":
                decision = str(known.get("decision") or "")
                return richtext.inline(DECISION_WORDS.get(decision, decision)[:SHORT])
            case "annotate" | "fork":
                seq = known.get("about" if self.entry.verb == "annotate" else "forked_at")
                return richtext.inline(f"event {seq}"[:SHORT] if seq else "")
            case "export":
                return richtext.inline(str(known.get("format") or "")[:SHORT])
        return Markup()

    @property
    def target(self) -> Markup:
        """Return the target, in words if it is known."""
        place = self.places.get(self.entry.target)
        return richtext.inline((place.words if place else self.entry.target)[:SHORT])

    @property
    def named(self) -> str:
        """Return the target as stored, escaped for an attribute."""
        return hidden_characters.spelled_out(self.entry.target[:SHORT])

    @property
    def target_href(self) -> str:
        """Return the target's address; empty if it has none or no longer exists."""
        entry = self.entry
        place = self.places.get(entry.target)
        href = place.href if place else target_links.of_export(entry.target, self.correlation)
        return (
            target_links.event(href, self.correlation.get("seq")) if entry.target.startswith("conversation:") else href
        )

    @property
    def reason(self) -> Markup:
        """Return the reason on one line."""
        return richtext.inline(" ".join(self._reason.split())[:SHORT])

    @cached_property
    def _reason(self) -> str:
        return self.entry.reason if self.is_revealed else _reason(self.entry)

    @property
    def has_masked(self) -> bool:
        """Return whether something in the entry is masked."""
        entry = self.entry
        return not self.is_revealed and (_reason(entry) != entry.reason or _correlation(entry) != _facts(entry))

    @property
    def short_message(self) -> Markup:
        """Return a decision's message to the agent, on one line."""
        return richtext.inline(" ".join(self.message.split())[:SHORT])

    @property
    def is_refused(self) -> bool:
        """Return whether the action was refused."""
        return self.entry.outcome != "done"

    @property
    def outcome(self) -> str:
        """Return the outcome, escaped for text."""
        return hidden_characters.spelled_out(self.entry.outcome)

    @property
    def facts(self) -> list[Fact]:
        """Return the details that the row does not show in full."""
        entry, reason = self.entry, self._reason
        items = [Fact("At", richtext.inline(f"{self.at:%Y-%m-%d %H:%M:%S.%f} UTC" if self.at else str(entry.at)))]
        items += [_filter_fact("Who", entry.principal, "who")]
        items += [_filter_fact("Acting as", entry.acting_as, "acting_as")] if entry.acting_as else []
        items += [_filter_fact("Did", entry.verb, "verb"), _filter_fact("To", entry.target, "target")]
        items += [Fact("Why", richtext.inline(reason))] if reason else []
        items += [Fact("Message to the agent", richtext.inline(self.message))] if self.message else []
        return items + [self._place(name, value) for name, value in self.correlation.items()]

    @property
    def digests(self) -> list[tuple[str, str]]:
        """Return the hashes, each with what it covers."""
        entry = self.entry
        states = [
            (f"State {when}", value) for when, value in (("before", entry.before), ("after", entry.after)) if value
        ]
        states += [("Who, what and why", entry.digest)] if entry.digest else []
        chain = [("Previous entry", entry.prev_hash), ("This entry", entry.hash)]
        return [(name, hidden_characters.spelled_out(value)) for name, value in (*states, *chain)]

    def _place(self, name: str, value: Any) -> Fact:
        text = as_text(value)
        place = self.places.get(_named(name, value))
        href = place.href if place else ""
        if name == "conversation" and isinstance(value, str):
            href = target_links.event(href, self.correlation.get("seq")) if href else ""
        words = f"{place.words} ({text})" if place else text
        return Fact(hidden_characters.spelled_out(name.replace("_", " ").capitalize()), richtext.inline(words), href)


def rows(entries: Sequence[EntryRow], may: Collection[str], *, revealed: int = 0) -> list[AuditRow]:
    """Return entries as rows, with what they are about; `may` are the reader's permissions, `revealed` is the entry
    shown without masks."""
    agent_colors.refresh_colors()
    parts = {entry.seq: (_facts if entry.seq == revealed else _correlation)(entry) for entry in entries}
    named = {entry.target for entry in entries}
    named |= {_named(name, value) for part in parts.values() for name, value in part.items()}
    places = target_links.places(named, may)
    changed, messages = (_changed(entries, parts), _messages(entries)) if "view" in may else ({}, {})
    return [
        AuditRow(
            entry,
            parts[entry.seq],
            places,
            changed.get(entry.target),
            messages.get(entry.target, "") if _is_done(entry) else "",
            is_revealed=entry.seq == revealed,
        )
        for entry in entries
    ]


def _changed(entries: Sequence[EntryRow], parts: Mapping[int, Json]) -> dict[str, diff_rows.RenderedDiff]:
    """Return the edits that decisions made to arguments, by target. The log has only hashes: the texts come from the
    record."""
    decided = [entry for entry in entries if entry.outcome == "done" and entry.target.startswith("approval:")]
    edits = [entry.target for entry in decided if parts[entry.seq].get("decision") == "edit"]
    ids = [target.partition(":")[2] for target in edits]
    if not ids:
        return {}
    approvals = Approval.objects.filter(id__in=ids, conversation__is_staged=False)
    return {
        f"approval:{id_}": diff_rows.draw(requested, ran)
        for id_, (requested, ran) in recorded_arguments.arguments_changed(approvals).items()
    }


def _messages(entries: Sequence[EntryRow]) -> dict[str, str]:
    """Return decisions' messages to the agent, by target, masked like reasons."""
    ids = [entry.target.partition(":")[2] for entry in entries if _is_done(entry)]
    approvals = Approval.objects.filter(id__in=ids, conversation__is_staged=False) if ids else Approval.objects.none()
    return {
        f"approval:{id_}": secret_masking.mask(message)
        for id_, message in recorded_arguments.messages_of(approvals).items()
    }


def _is_done(entry: EntryRow) -> bool:
    """Return whether the entry is a decision that was made."""
    return entry.outcome == "done" and entry.verb == "decide" and entry.target.startswith("approval:")


def datetime_of(at: int) -> datetime | None:
    """Return µs UTC as a datetime; None if out of range, since an entry may have been tampered with."""
    return to_datetime(at) if 0 <= at < YEAR_10000 else None


def item(entry: EntryRow) -> Json:
    """Return an entry as JSON for the API (§3.6)."""
    at = datetime_of(entry.at)
    return {
        "seq": entry.seq, "at": at.isoformat() if at else None, "principal": entry.principal,
        "acting_as": entry.acting_as or None, "verb": entry.verb, "target": entry.target, "outcome": entry.outcome,
        "reason": _reason(entry), "correlation": _correlation(entry), "before": entry.before or None,
        "after": entry.after or None, "prev_hash": entry.prev_hash, "hash": entry.hash,
        "url": reverse("audit-entry", args=[entry.seq]),
    }  # fmt: skip


def _filter_fact(name: str, value: str, filter_: str) -> Fact:
    """Return a fact that links to all entries with the same value."""
    return Fact(name, richtext.inline(value), f"{_list_address()}?{urlencode({filter_: value})}")


@cache
def _list_address() -> str:
    """Return the address of the list, cached: a page needs it two hundred times, and Django takes 0.1 ms each."""
    return reverse("audit")


@cache
def _entry_address() -> str:
    """Return the address of entry 0 as a pattern."""
    return reverse("audit-entry", args=[0])


def _named(name: str, value: Any) -> str:
    """Return a fact's value, written like a target if it could be one."""
    return f"{target_links.PLACES[name]}:{value}" if name in target_links.PLACES and isinstance(value, str) else ""


def _reason(entry: EntryRow) -> str:
    return secret_masking.mask(entry.reason)


def revealed_item(entry: EntryRow) -> Json:
    """Return an entry as JSON without masks."""
    return item(entry) | {"reason": entry.reason, "correlation": _facts(entry)}


def _correlation(entry: EntryRow) -> Json:
    return dict(secret_masking.mask_json(_facts(entry)))


def _facts(entry: EntryRow) -> Json:
    return entry_facts.parse(entry.correlation)
