"""What a person has missed: decisions, failures, requests, finished runs and other people's actions.

For the list. Read by indexes, the newest few of each: approvals by when they were requested and decided, the newest
`RUNS` runs, the newest `ENTRIES` audit entries. Of events only the last one of each of these runs is read.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from markupsafe import Markup

from conversations.conversation.conversation_row import strip_prefix, visible
from conversations.core import hidden_characters, page_urls
from conversations.core.micros import to_datetime
from conversations.listing.sql_conditions import fetch_rows
from conversations.models import Approval, AuditEntry, Conversation
from conversations.models.approval import DECISION_WORDS
from conversations.models.run import FAILED

SHOWN = 4  # of each kind
RUNS = 400  # the newest, that are looked at
ENTRIES = 200  # the newest of the audit log
MAX_COUNTED = 50  # approvals of each kind that are counted
DECIDED, WAITING = BOUNDED = ("Decided", "s-done"), ("Asked, still waiting", "s-waiting")

_ENDED = """SELECT r.conversation_id,r.agent,r.status,r.reason,e.seq,e.at FROM
(SELECT * FROM conversations_run ORDER BY id DESC LIMIT %s) r
JOIN conversations_event e ON e.conversation_id=r.conversation_id AND e.seq=r.ended_seq
WHERE r.parent_call IS NULL AND r.kind='agent' AND e.at>%s ORDER BY e.at DESC"""
_DECISIONS = DECISION_WORDS | {"expired": "expired undecided"}
_DEEDS = {
    "pause": "paused", "resume": "resumed", "take_over": "taken over", "hand_back": "handed back", "stop": "stopped",
    "cancel": "stopped", "abort": "aborted",
}  # fmt: skip


class Missed(NamedTuple):
    """One thing that happened: in which conversation (row id), at which event (0: none), what, by whom, when (µs
    UTC)."""

    conversation: int
    seq: int
    what: str
    by: str
    at: int


@dataclass(frozen=True, slots=True)
class MissedRow:
    """A missed thing, ready to draw."""

    href: str
    title: Markup
    what: Markup
    by: Markup
    at: datetime


@dataclass(frozen=True, slots=True)
class MissedGroup:
    """Missed things of one kind: the newest, and how many there are in all (`is_more`: at least)."""

    words: str
    symbol: str
    rows: list[MissedRow]
    number: int
    is_more: bool


@dataclass(frozen=True, slots=True)
class SinceLeft:
    """What a person has missed since a moment."""

    since: datetime
    groups: list[MissedGroup]


def since_left(since: int, me: str) -> SinceLeft | None:
    """Return what others did since a moment (µs UTC); `me` is the reader's principal. None if nothing happened."""
    ended = [*fetch_rows(_ENDED, [RUNS, since])]
    by_kind = {
        DECIDED: _decisions_since(since, me),
        ("Failed", "s-failed"): [_run_end(row) for row in ended if row[2] in FAILED],
        WAITING: _requests_since(since),
        ("Done by people", "hand"): _done_by_people(since, me),
        ("Finished", "s-done"): [_run_end(row) for row in ended if row[2] == "done"],
    }
    shown = {kind: missed[:SHOWN] for kind, missed in by_kind.items()}
    named = _named(missed.conversation for rows in shown.values() for missed in rows)
    groups = []
    for (words, symbol), rows in shown.items():
        drawn = [_drawn(missed, *named[missed.conversation]) for missed in rows if missed.conversation in named]
        number, most = len(by_kind[words, symbol]), MAX_COUNTED if (words, symbol) in BOUNDED else RUNS
        if drawn:
            groups.append(MissedGroup(words, symbol, drawn, min(number, most), number > most))
    return SinceLeft(to_datetime(since), groups) if groups else None


def _decisions_since(since: int, me: str) -> list[Missed]:
    decided = Approval.objects.filter(decided_at__gt=since, rule=None, status__in=("decided", "expired"))
    decided = decided.exclude(decided_by=me)
    names = ("conversation", "decided_seq", "status", "decision", "decided_by", "decided_at")
    rows = decided.order_by("-decided_at").values_list(*names)[: MAX_COUNTED + 1]
    return [
        Missed(of, seq or 0, _DECISIONS.get(decision or status, status), by or "", at)
        for of, seq, status, decision, by, at in rows
    ]


def _requests_since(since: int) -> list[Missed]:
    waiting = Approval.objects.open().filter(asked_at__gt=since).order_by("-asked_at")
    rows = waiting.values_list("conversation", "asked_seq", "asked_at")[: MAX_COUNTED + 1]
    return [Missed(of, seq, "waits for approval", "", at) for of, seq, at in rows]


def _run_end(row: tuple[int, str, str, str, int, int]) -> Missed:
    conversation, agent, status, reason, seq, at = row
    why = "failed" if reason in ("", "error") else reason.replace("_", " ")
    return Missed(conversation, seq, "" if status == "done" else why, agent, at)


def _done_by_people(since: int, me: str) -> list[Missed]:
    """Return what people did to conversations, from the newest audit entries."""
    newest = AuditEntry.objects.order_by("-seq").values_list("at", "principal", "verb", "target", "outcome")[:ENTRIES]
    deeds = [
        (at, by, verb, target.removeprefix("conversation:"))
        for at, by, verb, target, outcome in newest
        if at > since and by != me and by.startswith("user:") and verb in _DEEDS and outcome == "done"
    ]
    ids = dict(Conversation.objects.filter(key__in={key for *_, key in deeds}).values_list("key", "id"))
    return [Missed(ids[key], 0, _DEEDS[verb], by, at) for at, by, verb, key in deeds if key in ids]


def _named(conversations: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return the key and title of each conversation that is visible."""
    rows = Conversation.objects.visible().filter(id__in=set(conversations)).values_list("id", "key", "title")
    return {id_: (key, title) for id_, key, title in rows}


def _drawn(missed: Missed, key: str, title: str) -> MissedRow:
    return MissedRow(
        href=page_urls.event_url(key, missed.seq) if missed.seq else page_urls.conversation_url(key),
        title=visible((title or key)[:120]),
        what=visible(missed.what[:120]),
        by=visible(hidden_characters.spelled_out(strip_prefix(missed.by))),
        at=to_datetime(missed.at),
    )
