"""Runs: claimed, held, ended, taken away, asked for again (law F, §3.4). Called by workers and by people's pages.

A worker names what it holds as `Claim`; whatever it writes is stored only while that is so, else `Fenced` is raised and
the worker stops at once. Lock order: conversation, run (law B).
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from django.db import IntegrityError, connection
from django.db.models import F, Q

from conversations.access.action_context import audited_action, event_author
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import node_heartbeat, principals
from conversations.core.errors import Conflict, Fenced, NotFound
from conversations.core.failpoints import failpoint
from conversations.core.ids import new_id
from conversations.core.node_heartbeat import database_now
from conversations.core.principals import SYSTEM, Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log.records import NewEvent
from conversations.models import Agent, Conversation, Run, ToolCall
from conversations.models.run import ENDING
from conversations.runs import lease_watch

LEASE = 15.0  # seconds a worker may be silent
CLOCK_SLACK = 5.0  # seconds that a database's clock may go back without a lease being void
Body = dict[str, object]


class Claim(NamedTuple):
    """A run in a worker's hands. `state` is what it paused with, sealed; None at the first start."""

    run: str
    attempt: int
    conversation: str
    agent: str
    kind: str
    input_seq: int
    state: str | None
    state_mac: str | None
    sdk: str | None

    @property
    def principal(self) -> Principal:
        """Who writes the run's events."""
        return principals.run_principal(self.agent)

    def event(self, payload: Body) -> NewEvent:
        """Make one of the run's events, behind its fence."""
        fields: Body = {"id": new_id(), "run_id": self.run, "agent": self.agent}
        return log.from_internal(self.conversation, fields | payload, self.principal)._replace(attempt=self.attempt)


def claim(worker: str, agents: Collection[str], *, at_most: int) -> list[Claim]:
    """Take queued runs of these agents, oldest first, one per conversation; none of a paused or owned conversation.
    Replays run beside whatever waits, is paused or is held there."""
    taken: list[Claim] = []
    while len(taken) < at_most:
        ids = _next(agents, at_most - len(taken))
        if not ids:
            break
        failpoint("before-lease")
        claimed = _take_all(ids, worker)
        if not claimed:
            break
        taken += claimed
    return taken


# As text: a worker asks this each time a run ends, and Django needs 4 ms to write it. `|| ''` keeps the planner from
# the index over all runs that an agent ever had; that of the queued ones is small.
FREE = """SELECT r.id, r.kind, r.conversation_id, r.queued_seq FROM conversations_run r
 JOIN conversations_conversation c ON c.id=r.conversation_id
 WHERE r.status='queued' AND (r.agent || '') IN ({agents})
 AND (r.kind='replay' OR c.state='open' AND c.owner='')
 AND (r.kind<>'agent' OR NOT EXISTS (SELECT 1 FROM conversations_run b WHERE b.conversation_id=r.conversation_id
  AND b.kind='agent' AND b.parent_call IS NULL AND b.status IN ('running', 'waiting')))"""


def _next(agents: Collection[str], at_most: int) -> list[str]:
    """Return ids of runs that may be taken, the first of each conversation."""
    if not agents:
        return []
    free = FREE.format(agents=", ".join(["%s"] * len(agents)))
    with connection.cursor() as cursor:
        cursor.execute(f"{free} ORDER BY r.id LIMIT %s", [*agents, at_most])
        rows = cursor.fetchall()
        replays = [id_ for id_, kind, *_ in rows if kind != "agent"]
        places = {conversation for _, kind, conversation, _ in rows if kind == "agent"}
        if places and len(rows) == at_most:  # ids of one millisecond have no order, and the rest was cut off
            among = ", ".join(["%s"] * len(places))
            cursor.execute(f"{free} AND r.kind='agent' AND r.conversation_id IN ({among})", [*agents, *places])
            rows = cursor.fetchall()
    latest_first = sorted(
        ((seq, conversation, id_) for id_, kind, conversation, seq in rows if kind == "agent"), reverse=True
    )
    first = {conversation: id_ for _, conversation, id_ in latest_first}
    return [*first.values(), *replays]


def _take_all(ids: Sequence[str], worker: str) -> list[Claim]:
    """Take them in one transaction; when another worker began one of their conversations meanwhile, one by one."""
    try:
        return _take(ids, worker)
    except IntegrityError:
        taken: list[Claim] = []
        for run in ids:
            with suppress(IntegrityError):
                taken += _take([run], worker)
        return taken


def _take(ids: Sequence[str], worker: str) -> list[Claim]:
    with write_transaction():
        owners = Run.objects.filter(id__in=ids).values("conversation")
        locked = Conversation.objects.select_for_update().filter(id__in=owners).order_by("id")
        keys = dict(locked.values_list("id", "key"))
        may_begin = Q(conversation__in=Conversation.objects.free().filter(id__in=keys)) | Q(kind="replay")
        queued = Run.objects.filter(may_begin, id__in=ids, status="queued")
        runs = list(queued.order_by("queued_seq", "id"))
        until = database_now() + int(LEASE * 1e6)
        fields: dict[str, Any] = {"status": "running", "worker": worker[:100], "stop": "", "lease_until": until}
        Run.objects.filter(id__in=[run.id for run in runs]).update(attempt=F("attempt") + 1, **fields)
        claims = [_claimed(run, keys[run.conversation_id]) for run in runs]
        body: Body = {"event": "run.started", "worker": worker[:100]}
        log.append([claimed.event(body | _started(claimed)) for claimed in claims])
    return claims


def _claimed(run: Run, key: str) -> Claim:
    fit = (run.kind, run.input_seq, run.state, run.state_mac, run.sdk)
    return Claim(run.id, run.attempt + 1, key, run.agent, *fit)


def _started(claimed: Claim) -> Body:
    """Return which attempt it is, and of what kind where it is no agent's answer."""
    return {"attempt": claimed.attempt} | ({} if claimed.kind == "agent" else {"run_kind": claimed.kind})


def renew(claims: Collection[Claim]) -> dict[str, str]:
    """Hold on to these runs for another lease; answer what is asked of each that is still held: "", pause, stop…"""
    until = database_now() + int(LEASE * 1e6)
    mine = {claimed.run: claimed.attempt for claimed in claims}
    with write_transaction():
        held = (
            Run.objects.filter(id__in=mine, status="running").select_for_update().values_list("id", "attempt", "stop")
        )
        stops = {run: stop for run, attempt, stop in held.order_by("id") if mine[run] == attempt}
        Run.objects.filter(id__in=stops).update(lease_until=until)
    return stops


def finish(claimed: Claim, payload: Body, *more: Body) -> None:
    """End a run: `payload` is its `run.done`, `run.failed`, `run.cancelled` or `run.incompatible`; `more` comes before.

    Raises `Fenced` when the run is not the worker's any more.
    """
    with write_transaction():
        _hold(claimed, lease_until=None, state=None, state_mac=None)
        log.append([claimed.event(body) for body in (*more, payload)])


def wait(
    claimed: Claim, reason: str, *requests: Body, state: str, state_mac: str, sdk: str, about: Body | None = None
) -> None:
    """Put a run aside, with its state sealed; the worker is free. `requests` are its approval.requested; `about` comes
    beside the reason: of `server`, which MCP server it waits for.

    One that was asked to end meanwhile ends; one that was paused goes on when the pause is over already.
    """
    with write_transaction():
        conversation = _hold(claimed, lease_until=None, state=state, state_mac=state_mac, sdk=sdk)
        if _ended_as_asked(claimed):
            return
        bodies: list[Body] = [*requests, {"event": "run.waiting", "reason": reason, **(about or {})}]
        if reason == "pause" and not conversation.is_held:
            bodies.append({"event": "run.resumed", "reason": "the pause ended"})
        log.append([claimed.event(body) for body in bodies])


def put_back(claimed: Claim, reason: str, *, sealed: tuple[str, str, str] | None = None) -> None:
    """Queue a run again for another worker: it goes on from `sealed` (state, its mac, its sdk), else from what it had.

    Only for a run none of whose calls was begun since that state. Raises `Fenced`.
    """
    with write_transaction():
        state_fields = dict(zip(("state", "state_mac", "sdk"), sealed, strict=True)) if sealed else {}
        _hold(claimed, lease_until=None, **state_fields)
        if not _ended_as_asked(claimed):
            log.append([claimed.event({"event": "run.resumed", "reason": reason})])


def interrupt_dead() -> list[str]:
    """End runs whose worker was silent for a lease: `interrupted`, and what was executing is `unknown` for ever.

    A lease further ahead than any can be was taken by a clock that was ahead. It ends when it was not renewed for as
    long as a lease, by this process's own clock.
    """
    now = database_now()
    dead = list(Run.objects.filter(status="running", lease_until__lt=now).order_by("id")[:100])
    void = list(Run.objects.filter(status="running", lease_until__gt=_furthest(now)).order_by("id")[:100])
    return [run.id for run in (*dead, *lease_watch.unrenewed(void, LEASE)) if _interrupt(run)]


def interrupt_left() -> list[str]:
    """End all runs that a worker has, whatever their leases: for a process that alone runs agents, at its start."""
    left = list(Run.objects.filter(status="running").order_by("id"))
    return [run.id for run in left if _interrupt(run)]


def _furthest(now: int) -> int:
    """Return the latest end that a lease can have, µs UTC by the database's clock."""
    return now + int((LEASE + CLOCK_SLACK) * 1e6)


def _interrupt(run: Run) -> bool:
    """End a run that was not renewed since it was read."""
    with write_transaction():
        conversation = Conversation.objects.locked(run.conversation_id)
        return _interrupted(run, conversation, SYSTEM)


def _interrupted(run: Run, conversation: Conversation, by: Principal) -> bool:
    if not Run.objects.mine(run.id, run.attempt).filter(lease_until=run.lease_until).update(lease_until=None):
        return False
    writer, by_whom = (by, {}) if by == SYSTEM else event_author(by)
    why = f"the worker {run.worker} is gone; nothing was repeated"
    fields: Body = {"id": new_id(), "run_id": run.id, "agent": run.agent, "reason": why, "calls": _entered(run.id)}
    fields |= _kind(run.kind) | by_whom
    log.append([log.from_internal(conversation.key, {"event": "run.interrupted", **fields}, writer)])
    return True


def _is_abandoned(run: Run) -> bool:
    """Return whether no worker can hold a running run: its lease is over, or void and its worker gone."""
    now, until = database_now(), run.lease_until
    if run.status != "running" or until is None:
        return False
    return until < now or (
        until > _furthest(now) and not node_heartbeat.is_there(node_heartbeat.worker_node(run.worker))
    )


def wake(run: str, reason: str) -> bool:
    """Queue a run again that waits for something other than a person: it is there. False: it does not wait any more."""
    with write_transaction():
        row = _run(run)
        conversation = Conversation.objects.locked(row.conversation_id)
        if not Run.objects.filter(id=run, status="waiting", reason="server").update(status="queued"):
            return False
        body: Body = {"event": "run.resumed", "id": new_id(), "run_id": run, "agent": row.agent, "reason": reason}
        log.append([log.from_internal(conversation.key, body, SYSTEM)])
    return True


def park(run: str, reason: str) -> bool:
    """End a queued run that no worker could go on with as `incompatible`. False: it is not queued any more."""
    with write_transaction():
        row = _run(run)
        conversation = Conversation.objects.locked(row.conversation_id)
        if not Run.objects.filter(id=run, status="queued").update(state=None, state_mac=None):
            return False
        fields: Body = {"id": new_id(), "run_id": run, "agent": row.agent, "reason": reason}
        fields |= {"calls": entered} if (entered := _entered(run)) else {}
        log.append([log.from_internal(conversation.key, {"event": "run.incompatible", **fields}, SYSTEM)])
    return True


def run_again(by: Who, run: str) -> str:
    """Queue a new run on the same input as one that ended badly; answer its id. Raises `NotFound`, `Conflict`."""
    with audited_action(by, "run_again", f"run:{run}", right="control") as principal:
        old = _run(run)
        conversation = Conversation.objects.locked(old.conversation_id)
        if old.kind == "replay":
            raise Conflict("replay the call again from its page instead", code="is_replay")
        if old.status not in ("failed", "cancelled", "interrupted", "incompatible"):
            raise Conflict(f"run {run} is {old.status}: only runs that did not finish can run again")
        if not Agent.objects.filter(name=old.agent).exists():
            raise Conflict(f"no team has the agent {old.agent} any more: write to another agent", code="no_agent")
        new = new_id()
        fields: Body = {"run_kind": old.kind, "agent": old.agent, "input_seq": old.input_seq, "reason": f"again: {run}"}
        writer, by_whom = event_author(principal)
        queued: Body = {"event": "run.queued", "id": new_id(), "run_id": new, **fields, **by_whom}
        log.append([log.from_internal(conversation.key, queued, writer)])
        chain.enter(principal, "run_again", f"run:{run}", correlation={"conversation": conversation.key, "run": new})
    return new


def stop(by: Who, run: str) -> None:
    """Ask the worker to cancel a run, which it hears within a second; a run nobody holds is cancelled here.

    Its open questions are withdrawn in the same transaction, by `log.append`.
    """
    with audited_action(by, "cancel_run", f"run:{run}", right="control") as principal:
        row = _run(run)
        conversation = Conversation.objects.locked(row.conversation_id)
        if not end(principal, conversation, run, "cancel") and _run(run).status != "running":
            raise Conflict(f"run {run} is already {_run(run).status}")
        chain.enter(principal, "cancel_run", f"run:{run}", correlation={"conversation": conversation.key})


def end(principal: Principal, conversation: Conversation, run: str, how: str, reason: str = "") -> bool:
    """Have a run end, inside an action with the conversation locked; `how` is one of `ENDING`.

    The worker hears it within a second; a run nobody holds is cancelled here, and one whose worker is gone is
    interrupted. False: it is over, or is ending so already.
    """
    writer, by_whom = event_author(principal)
    row = _run(run)
    if _is_abandoned(row) and _interrupted(row, conversation, principal):
        return True  # else its worker has just renewed it
    body: Body = {"id": new_id(), "run_id": run, "agent": row.agent, **_kind(row.kind), **by_whom}
    is_asked = ENDING[ENDING.index(how) :]
    if Run.objects.filter(id=run, status="running").exclude(stop__in=is_asked).update(stop=how):
        body |= {"event": "run.stopping", "how": how} | ({"reason": reason} if reason else {})
    elif Run.objects.filter(id=run, status__in=("queued", "waiting")).update(state=None, state_mac=None):
        body |= {"event": "run.cancelled", "reason": reason or f"by {principal}"}
        body |= {"calls": entered} if (entered := _entered(run)) else {}
    else:
        return False
    log.append([log.from_internal(conversation.key, body, writer)])
    return True


def _ended_as_asked(claimed: Claim) -> bool:
    """End a run that its worker lets go of before it heard that it should end."""
    if not Run.objects.filter(id=claimed.run, stop__in=ENDING).update(state=None, state_mac=None):
        return False
    body: Body = {"event": "run.cancelled", "reason": "asked to stop"}
    log.append([claimed.event(body | ({"calls": entered} if (entered := _entered(claimed.run)) else {}))])
    return True


def _hold(claimed: Claim, **fields: Any) -> Conversation:
    """Write the run's row if it is still the worker's; the conversation is locked first, and answered."""
    owner = Run.objects.values_list("conversation_id", flat=True).get(id=claimed.run)
    conversation = Conversation.objects.locked(owner)
    if not Run.objects.mine(claimed.run, claimed.attempt).update(**fields):
        raise Fenced(f"run {claimed.run} is no longer running in attempt {claimed.attempt}")
    return conversation


def _entered(run: str) -> list[str]:
    """Name the calls that were entered and have not ended; of a run that waits, those around the one it asks about."""
    return list(ToolCall.objects.filter(run=run, status="executing").values_list("id", flat=True))


def _kind(kind: str) -> Body:
    """Say of a replay's end that it is one: it is not run again from there."""
    return {"run_kind": kind} if kind == "replay" else {}


def _run(run: str) -> Run:
    row = Run.objects.filter(id=run).first()
    if row is None:
        raise NotFound(f"there is no run {run}")
    return row
