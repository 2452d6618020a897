"""Steering a conversation: pause, resume, take over, hand back, stop, abort (design 3.6, 3.7), one or many at once.

Whether it is paused and who holds it are independent; while either is so, no run starts and what is said waits. What
runs ends its turn and is put aside; it goes on, and what came meanwhile is answered in order, as soon as neither is so.
Agents that are not served here are told the verb on `control:{agent}`. Lock order: conversation, run.
"""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from django.db.models import QuerySet

from conversations import audit, envelopes, log
from conversations.actions import runs
from conversations.actions.acting import acting, writing_as
from conversations.actions.runs import Body
from conversations.errors import Invalid, NotAllowed, NotFound, SwitchboardError, TooLate
from conversations.ids import new_id
from conversations.models import Agent, Conversation, Event, Participant, Run
from conversations.principals import Principal
from conversations.rights import Who

MAX_REASON = 2000  # characters
MAX_BULK = 200  # conversations of one request
MOST_FOREIGN = 100  # agents told
LOOK_BACK = 2000  # events in which the loser of a race is looked up


class Outcome(NamedTuple):
    """What became of one conversation of several. `error` None: it was done."""

    conversation: str
    error: SwitchboardError | None


def pause(by: Who, conversation: str, reason: str = "") -> Conversation:
    """Let no run start until it is resumed; what runs ends its turn and waits. Raises `TooLate` when it is paused."""
    with _steering(by, "pause", conversation, reason) as (principal, found):
        if found.state == "paused":
            raise _late(found, "conversation.paused", "paused", found.paused_seq)
        _tell(found, principal, "conversation.paused", reason)
        _hold_back(found)
    return _now(found)


def resume(by: Who, conversation: str, reason: str = "") -> Conversation:
    """End the pause. Raises `TooLate` when it is not paused."""
    with _steering(by, "resume", conversation, reason) as (principal, found):
        if found.state != "paused":
            raise _late(found, "conversation.resumed", "not_paused")
        _tell(found, principal, "conversation.resumed", reason)
        _let_go(found, principal)
    return _now(found)


def take_over(by: Who, conversation: str, reason: str = "") -> Conversation:
    """Hold it as a person: agents wait until it is handed back. Raises `TooLate` when somebody holds it."""
    with _steering(by, "take_over", conversation, reason) as (principal, found):
        if principal.kind != "user":
            raise NotAllowed("only a person takes a conversation over; a token may pause it")
        if found.owner:
            raise _late(found, "conversation.taken_over", "taken_over", found.owned_seq)
        _tell(found, principal, "conversation.taken_over", reason)
        _hold_back(found)
    return _now(found)


def hand_back(by: Who, conversation: str, reason: str = "") -> Conversation:
    """Give it back to the agents. Who is not the owner has to say why (`Invalid`). Raises `TooLate` when nobody
    holds it."""
    with _steering(by, "hand_back", conversation, reason) as (principal, found):
        if not found.owner:
            raise _late(found, "conversation.handed_back", "not_taken_over")
        if found.owner != str(principal) and not reason.strip():
            raise Invalid(f"expected a reason: {found.owner} holds it", field="reason")
        _tell(found, principal, "conversation.handed_back", reason, owner=found.owner)
        _let_go(found, principal)
    return _now(found)


def stop(by: Who, conversation: str, reason: str = "") -> Conversation:
    """End what answers here: what runs after its turn, what waits or is queued at once. Raises `TooLate` when nothing
    is left to stop."""
    return _end(by, "stop", conversation, reason)


def abort(by: Who, conversation: str, reason: str = "") -> Conversation:
    """End it now: a call that has begun is `unknown` from then on. Raises `TooLate` when nothing is left to abort."""
    return _end(by, "abort", conversation, reason)


ACTIONS: dict[str, Callable[[Who, str, str], Conversation]] = {
    "pause": pause,
    "resume": resume,
    "take_over": take_over,
    "hand_back": hand_back,
    "stop": stop,
    "abort": abort,
}


def steer(by: Who, action: str, conversation: str, reason: str = "") -> Conversation:
    """Do the action of this name. Raises what it raises, and `Invalid` for a name that is none."""
    if action not in ACTIONS:
        raise Invalid(f"expected one of {', '.join(ACTIONS)}", field="action")
    return ACTIONS[action](by, conversation, reason)


def steer_each(by: Who, action: str, conversations: Collection[str], reason: str = "") -> list[Outcome]:
    """Do it to each of these, each in a transaction of its own: one that fails takes no other with it."""
    if not 1 <= len(conversations) <= MAX_BULK:
        raise Invalid(f"expected 1 to {MAX_BULK}; got {len(conversations):,}", field="conversations")
    if action not in ACTIONS:
        raise Invalid(f"expected one of {', '.join(ACTIONS)}", field="action")
    return [_outcome(by, action, key, reason) for key in dict.fromkeys(conversations)]


def _outcome(by: Who, action: str, conversation: str, reason: str) -> Outcome:
    try:
        ACTIONS[action](by, conversation, reason)
    except SwitchboardError as error:
        return Outcome(conversation, error)
    return Outcome(conversation, None)


@contextmanager
def _steering(by: Who, verb: str, key: str, reason: str) -> Iterator[tuple[Principal, Conversation]]:
    """Hold the transaction of one verb: the right, the conversation under lock; at the end its foreigners and the
    audit log are told."""
    with acting(by, verb, f"conversation:{key}", right="control") as principal:
        if len(reason) > MAX_REASON:
            raise Invalid(f"expected at most {MAX_REASON:,} characters; got {len(reason):,}", field="reason")
        found = Conversation.objects.visible().filter(key=key).first()
        if found is None:
            raise NotFound(f"no conversation {key[:80]!r}")
        yield principal, Conversation.objects.locked(found.pk)
        _tell_foreigners(found, principal, verb, reason)
        audit.enter(principal, verb, f"conversation:{key}", reason=reason, correlation={"conversation": key})


def _end(by: Who, how: str, conversation: str, reason: str) -> Conversation:
    with _steering(by, how, conversation, reason) as (principal, found):
        left = Run.objects.of(found).values_list("id", flat=True)
        ended = [run for run in left if runs.end(principal, found, run, how, reason)]
        if not ended and not _foreigners(found).exists():
            raise _late(found, "run.stopping", "nothing_to_stop")
    return _now(found)


def _tell(found: Conversation, principal: Principal, kind: str, reason: str, **more: object) -> None:
    writer, by = writing_as(principal)
    told: Body = {"event": kind, "id": new_id(), **by, **more} | ({"reason": reason} if reason else {})
    log.append([log.of_ours(found.key, told, writer)])


def _hold_back(found: Conversation) -> None:
    """Ask what runs to end its turn and wait."""
    Run.objects.of(found).filter(status="running", stop="").update(stop="pause")


def _let_go(found: Conversation, principal: Principal) -> None:
    """Let what was put aside go on, unless it is still held. A run that was asked to pause and has not heard it goes
    on; one that has heard it is queued again when its worker lets go of it (`runs.wait`)."""
    if _now(found).is_held:
        return
    here = Run.objects.of(found)
    here.filter(status="running", stop="pause").update(stop="")
    writer, by = writing_as(principal)
    for run in here.filter(status="waiting", reason="pause"):
        told: Body = {"event": "run.resumed", "id": new_id(), "run_id": run.id, "agent": run.agent, **by}
        log.append([log.of_ours(found.key, told, writer)])


def _tell_foreigners(found: Conversation, principal: Principal, verb: str, reason: str) -> None:
    """Post the verb to each agent that other processes serve: they steer themselves."""
    for name in _foreigners(found).order_by("name").values_list("name", flat=True)[:MOST_FOREIGN]:
        about = {"by": str(principal), "reason": reason}
        envelope = {"id": new_id(), "conversation_id": found.key, "sender": str(principal), "recipient": name}
        told = {**envelope, "type": "control", "content": verb, "metadata": about}
        body = json.dumps({**told, "created_at": datetime.now(UTC).isoformat()}, ensure_ascii=False)
        said = envelopes.read(body.encode())
        topic = f"control:{name.removeprefix('agent:')}"
        log.append([log.of_payload(topic, envelope["id"], body, said, principal)])


def _foreigners(found: Conversation) -> QuerySet[Participant]:
    served = [f"agent:{name}" for name in Agent.objects.values_list("name", flat=True)]
    return Participant.objects.filter(conversation=found, kind="agent").exclude(name__in=[*served, "agent:"])


def _late(found: Conversation, kind: str, code: str, seq: int = 0) -> TooLate:
    """Say who was first: the event at `seq`, else the newest of its kind."""
    near = Event.objects.filter(conversation=found, seq__gt=found.head_seq - LOOK_BACK)
    event = (
        (Event.objects.filter(conversation=found, seq=seq) if seq else near.filter(kind=kind)).order_by("-seq").first()
    )
    if event is None:
        return TooLate(NOTHING[code], code=code)
    by = json.loads(event.body).get("by") or event.principal
    at = datetime.fromtimestamp(event.at / 1e6, UTC)
    words = f"{by} {DID[kind]} at {at:%H:%M:%S} UTC"
    return TooLate(f"{NOTHING[code]}: {words}", code=code, did=kind.rpartition(".")[2], by=by, at=at.isoformat())


NOTHING = {
    "paused": "it is paused already",
    "not_paused": "it is not paused",
    "taken_over": "somebody holds it already",
    "not_taken_over": "nobody holds it",
    "nothing_to_stop": "no agent is at work here that was not told to stop",
}
DID = {
    "conversation.paused": "paused it",
    "conversation.resumed": "resumed it",
    "conversation.taken_over": "took it over",
    "conversation.handed_back": "handed it back",
    "run.stopping": "stopped it",
}


def _now(found: Conversation) -> Conversation:
    return Conversation.objects.get(pk=found.pk)
