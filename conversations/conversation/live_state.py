"""The state of a conversation in words, the most urgent first: "Waiting for you", "Triage is working". Only `hold_at`
queries.

Drawn in the head of its page; `conversation_row` says the same in short form in the list.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple

from conversations.conversation.attention import Attention
from conversations.conversation.conversation_row import strip_prefix
from conversations.models import Conversation, Event

_STOPPING = {
    "pause": "is finishing its turn, then pauses",
    "stop": "is finishing its turn, then stops",
    "cancel": "is being stopped",
    "abort": "is being aborted",
}
NAME = 40  # characters of a name in the head
_APPROVAL = {True: "Waiting for you", False: "Waiting for approval"}


class ControlHold(NamedTuple):
    """Who paused or took over a conversation: a principal, since when (µs UTC), by which event, why."""

    by: str
    since: int
    seq: int
    reason: str


class OpenRun(NamedTuple):
    """An unfinished run: its status, why it waits, which agent works in it, and what a person asked of it."""

    status: str
    reason: str
    agent: str
    stop: str


class LiveState(NamedTuple):
    """One state: glyph, words, since when (µs UTC, 0: not shown), and the event that explains it."""

    glyph: str
    words: str
    since: int = 0
    seq: int = 0
    reason: str = ""


class LiveStateFacts(NamedTuple):
    """What is known of a conversation; `me` is the reader, who may decide the open request if `can_decide`; `request`
    is its event."""

    me: str
    can_decide: bool = False
    need: Attention | None = None
    owned: ControlHold | None = None
    paused: ControlHold | None = None
    runs: Sequence[OpenRun] = ()
    request: int = 0
    active_agent: str = ""  # one that runs elsewhere and has just done something


def hold_at(conversation: Conversation, seq: int, owner: str = "") -> ControlHold | None:
    """Return the hold that began with an event; `owner` is who has taken over, if known. None for no event."""
    event = Event.objects.filter(conversation=conversation, seq=seq).first() if seq else None
    if event is None:
        return None
    body = json.loads(event.body)
    return ControlHold(owner or body.get("by") or event.principal, event.at, seq, body.get("reason") or "")


def states(facts: LiveStateFacts) -> list[LiveState]:
    """Return the states that apply, the most urgent first; at least one, which is Idle if there is no other."""
    need = facts.need.reason if facts.need else ""
    since = facts.need.since if facts.need else 0
    known = [
        LiveState("waiting", _APPROVAL[facts.can_decide], since, facts.request) if need == "approval" else None,
        LiveState("waiting", "Waiting for your reply", since) if need == "reply" and _is_mine(facts) else None,
        LiveState("waiting", _reply_words(facts), since) if need == "message" else None,
        _owned(facts.owned, facts.me),
        _paused(facts.paused, facts.me),
        LiveState("stuck", "Looks stuck", since) if need == "stuck" else None,
        _working(facts.runs, has_open_request=need == "approval"),
        LiveState("failed", "Failed", since) if need == "failed" else None,
        LiveState("running", f"{_short(facts.active_agent)} is active")
        if facts.active_agent and need != "approval"
        else None,
    ]
    return [state for state in known if state] or [LiveState("open", "Idle")]


def _reply_words(facts: LiveStateFacts) -> str:
    person = facts.need.person if facts.need else ""
    return "Waiting for your reply" if person == facts.me else f"Waiting for {strip_prefix(person)}'s reply"


def _is_mine(facts: LiveStateFacts) -> bool:
    return facts.owned is not None and facts.owned.by == facts.me


def _owned(hold: ControlHold | None, me: str) -> LiveState | None:
    if hold is None:
        return None
    words = "You took over" if hold.by == me else f"{_short(strip_prefix(hold.by))} took over"
    return LiveState("person", words, hold.since, hold.seq, hold.reason)


def _paused(hold: ControlHold | None, me: str) -> LiveState | None:
    if hold is None:
        return None
    who = "you" if hold.by == me else _short(strip_prefix(hold.by))
    return LiveState("paused", f"Paused by {who}", hold.since, hold.seq, hold.reason)


def _working(runs: Sequence[OpenRun], *, has_open_request: bool) -> LiveState | None:
    for run in runs:
        if run.status == "running":
            return LiveState("running", f"{_short(run.agent)} {_STOPPING.get(run.stop, 'is working')}")
        if run.status == "waiting" and run.reason == "server":
            return LiveState("paused", f"{_short(run.agent)} is waiting for a server")
        if run.status == "waiting" and run.reason != "approval":
            return LiveState("paused", f"{_short(run.agent)} is paused")
    if runs and not has_open_request:
        return LiveState("queued", "Queued")
    return None


def _short(name: str) -> str:
    """Cut a long name, so that what follows it is seen."""
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"
