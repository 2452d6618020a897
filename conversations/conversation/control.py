"""Control a conversation: pause, resume, take over, hand back, stop, abort (§3.6, §3.7), one or many at once.

Paused and taken over are independent; while either holds, no run starts and messages wait. Active runs end their turn
and are suspended; once neither holds, they continue and messages are answered in order. External agents receive the
action on `control:{agent}`. Lock order: conversation, run.
"""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import Q, QuerySet

from conversations.access.action_context import audited_action, check_reason, event_author, find_conversation
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import principals
from conversations.core.errors import Invalid, NotAllowed, SwitchboardError, TooLate
from conversations.core.ids import new_id
from conversations.core.micros import to_datetime
from conversations.core.principals import Principal
from conversations.events import log, registry
from conversations.models import Agent, Conversation, Event, Participant, Run
from conversations.runs import stop_and_rerun
from conversations.runs.claims import Body

MAX_BULK = 200  # conversations of one request
MAX_EXTERNAL = 100  # external agents that are notified
LOOK_BACK = 2000  # events in which the loser of a race is looked up
BY_PEOPLE = Q(principal="system") | Q(principal__startswith="user:")  # as `principals.is_people`


class ControlOutcome(NamedTuple):
    """The outcome for one of several conversations. `error` is None if it was done."""

    conversation: str
    error: SwitchboardError | None


def pause(by: Who, conversation: str, reason: str = "") -> Conversation:
    """Start no run until the conversation is resumed; active runs end their turn and wait. Raises TooLate if it is
    already paused."""
    with _performing(by, "pause", conversation, reason) as (principal, row):
        if row.state == "paused":
            raise _late(row, "conversation.paused", "paused", row.paused_seq)
        _append_event(row, principal, "conversation.paused", reason)
        _suspend_runs(row)
    return _now(row)


def resume(by: Who, conversation: str, reason: str = "") -> Conversation:
    """End the pause. Raises TooLate if the conversation is not paused."""
    with _performing(by, "resume", conversation, reason) as (principal, row):
        if row.state != "paused":
            raise _late(row, "conversation.resumed", "not_paused")
        _append_event(row, principal, "conversation.resumed", reason)
        _continue_runs(row, principal)
    return _now(row)


def take_over(by: Who, conversation: str, reason: str = "") -> Conversation:
    """Take over as a person: agents wait until it is handed back. Raises TooLate if someone has taken over."""
    with _performing(by, "take_over", conversation, reason) as (principal, row):
        if principal.kind != "user":
            raise NotAllowed("only a person can take over a conversation; a token can pause it")
        if row.owner:
            raise _late(row, "conversation.taken_over", "taken_over", row.owned_seq)
        _append_event(row, principal, "conversation.taken_over", reason)
        _suspend_runs(row)
    return _now(row)


def hand_back(by: Who, conversation: str, reason: str = "") -> Conversation:
    """Hand the conversation back to the agents. Anyone but the owner has to give a reason (Invalid). Raises TooLate if
    nobody has taken over."""
    with _performing(by, "hand_back", conversation, reason) as (principal, row):
        if not row.owner:
            raise _late(row, "conversation.handed_back", "not_taken_over")
        if row.owner != str(principal) and not reason.strip():
            raise Invalid(f"a reason is required: {row.owner} took over this conversation", field="reason")
        _append_event(row, principal, "conversation.handed_back", reason, owner=row.owner)
        _continue_runs(row, principal)
    return _now(row)


def stop(by: Who, conversation: str, reason: str = "") -> Conversation:
    """Stop the runs here: active ones after their turn, waiting or queued ones at once. Raises TooLate if there is
    nothing left to stop."""
    return _end(by, "stop", conversation, reason)


def abort(by: Who, conversation: str, reason: str = "") -> Conversation:
    """Stop the runs here now: a call that has begun becomes `unknown`. Raises TooLate if there is nothing left to
    abort."""
    return _end(by, "abort", conversation, reason)


ACTIONS: dict[str, Callable[[Who, str, str], Conversation]] = {
    "pause": pause,
    "resume": resume,
    "take_over": take_over,
    "hand_back": hand_back,
    "stop": stop,
    "abort": abort,
}


def perform(by: Who, action: str, conversation: str, reason: str = "") -> Conversation:
    """Perform the control action with this name. Raises what that action raises, and Invalid for an unknown name."""
    if action not in ACTIONS:
        raise Invalid(f"must be one of {', '.join(ACTIONS)}", field="action")
    return ACTIONS[action](by, conversation, reason)


def perform_on_each(by: Who, action: str, conversations: Collection[str], reason: str = "") -> list[ControlOutcome]:
    """Perform a control action on each conversation, each in its own transaction: a failure affects no other."""
    if not 1 <= len(conversations) <= MAX_BULK:
        raise Invalid(f"must have 1 to {MAX_BULK} items; got {len(conversations):,}", field="conversations")
    if action not in ACTIONS:
        raise Invalid(f"must be one of {', '.join(ACTIONS)}", field="action")
    return [_outcome(by, action, key, reason) for key in dict.fromkeys(conversations)]


def _outcome(by: Who, action: str, conversation: str, reason: str) -> ControlOutcome:
    try:
        ACTIONS[action](by, conversation, reason)
    except SwitchboardError as error:
        return ControlOutcome(conversation, error)
    return ControlOutcome(conversation, None)


@contextmanager
def _performing(by: Who, verb: str, key: str, reason: str) -> Iterator[tuple[Principal, Conversation]]:
    """Open the transaction of one control action: permission, the locked conversation; at the end external agents and
    the audit log."""
    with audited_action(by, verb, f"conversation:{key}", right="control") as principal:
        check_reason(reason)
        row = find_conversation(key)
        yield principal, Conversation.objects.locked(row.pk)
        _notify_external_agents(row, principal, verb, reason)
        chain.add_entry(principal, verb, f"conversation:{key}", reason=reason, correlation={"conversation": key})


def _end(by: Who, how: str, conversation: str, reason: str) -> Conversation:
    with _performing(by, how, conversation, reason) as (principal, row):
        left = list(Run.objects.of(row).values_list("id", flat=True))
        ended = [run for run in left if stop_and_rerun.end(principal, row, run, how, reason)]
        if not ended and not _external_agents(row).exists():
            raise _late(row, "run.stopping", "nothing_to_stop", of_runs=left)
    return _now(row)


def _append_event(conversation: Conversation, principal: Principal, kind: str, reason: str, **more: object) -> None:
    writer, by = event_author(principal)
    body: Body = {"event": kind, "id": new_id(), **by, **more} | ({"reason": reason} if reason else {})
    log.append([log.from_internal(conversation.key, body, writer)])


def _suspend_runs(conversation: Conversation) -> None:
    """Ask active runs to end their turn and wait."""
    Run.objects.of(conversation).filter(status="running", stop="").update(stop="pause")


def _continue_runs(conversation: Conversation, principal: Principal) -> None:
    """Let runs that were suspended continue, unless the conversation is still held. A run that has not noticed the
    pause simply continues; one that has is queued again once its worker releases it (`claims.suspend`)."""
    if _now(conversation).is_held:
        return
    here = Run.objects.of(conversation)
    here.filter(status="running", stop="pause").update(stop="")
    writer, by = event_author(principal)
    for run in here.filter(status="waiting", reason="pause"):
        body: Body = {"event": "run.resumed", "id": new_id(), "run_id": run.id, "agent": run.agent, **by}
        log.append([log.from_internal(conversation.key, body, writer)])


def _notify_external_agents(conversation: Conversation, principal: Principal, verb: str, reason: str) -> None:
    """Post the action to each external agent, which controls itself."""
    for name in _external_agents(conversation).order_by("name").values_list("name", flat=True)[:MAX_EXTERNAL]:
        about = {"by": str(principal), "reason": reason}
        envelope = {"id": new_id(), "conversation_id": conversation.key, "sender": str(principal), "recipient": name}
        fields = {**envelope, "type": "control", "content": verb, "metadata": about}
        fields["created_at"] = datetime.now(UTC).isoformat()
        log.append(log.from_people([f"control:{name.removeprefix('agent:')}"], fields, principal))


def _external_agents(conversation: Conversation) -> QuerySet[Participant]:
    """Return the external agents: without those known only from inside a tool of ours or from an import."""
    served = [f"agent:{name}" for name in Agent.objects.values_list("name", flat=True)]
    reachable = Participant.objects.filter(conversation=conversation, kind="agent", is_reachable=True)
    return reachable.exclude(name__in=[*served, "agent:"])


def _late(
    conversation: Conversation, kind: str, code: str, seq: int = 0, *, of_runs: Collection[str] | None = None
) -> TooLate:
    """Return a TooLate that names who was first: by the event at `seq`, else the newest of this type (`of_runs`: only
    of these runs) written by a person."""
    near = Event.objects.filter(conversation=conversation, seq__gt=conversation.head_seq - LOOK_BACK)
    events = Event.objects.filter(conversation=conversation, seq=seq) if seq else near.filter(kind=kind)
    events = events if of_runs is None else events.filter(run__in=of_runs)
    event = events.filter(BY_PEOPLE).order_by("-seq").first()
    if event is None:
        return TooLate(NOTHING[code], code=code)
    by = principals.doer(event.principal, str(json.loads(event.body).get("by") or ""))
    at, known = to_datetime(event.at), registry.declared(kind)
    summary = f"{by} {known.done_verb if known else kind} at {at:%Y-%m-%d %H:%M:%S} UTC"
    return TooLate(f"{NOTHING[code]}: {summary}", code=code, did=kind.rpartition(".")[2], by=by, at=at.isoformat())


NOTHING = {
    "paused": "the conversation is already paused",
    "not_paused": "the conversation is not paused",
    "taken_over": "someone has already taken over",
    "not_taken_over": "no one has taken over",
    "nothing_to_stop": "no agent is running here, or all were already told to stop",
}


def _now(conversation: Conversation) -> Conversation:
    return Conversation.objects.get(pk=conversation.pk)
