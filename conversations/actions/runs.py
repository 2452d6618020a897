"""Runs: claimed, held, ended, taken away, asked for again (design F, 3.4). Called by workers and by people's pages.

A worker names what it holds as `Claim`; whatever it writes is stored only while that is so, else `Fenced` is raised and
the worker stops at once. Lock order: conversation, run (design B).
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from django.db import IntegrityError, connection
from django.db.models import F, Q

from conversations import audit, log, principals
from conversations.actions.acting import acting, writing_as
from conversations.errors import Conflict, Fenced, NotFound
from conversations.failpoints import failpoint
from conversations.ids import new_id
from conversations.log.events import NewEvent
from conversations.log.writing import writing
from conversations.models import Agent, Conversation, Run, ToolCall
from conversations.models.run import ENDING
from conversations.nodes import database_time
from conversations.principals import SYSTEM, Principal
from conversations.rights import Who

LEASE = 15.0  # seconds a worker may be silent
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
        return principals.of_run(self.agent)

    def event(self, payload: Body) -> NewEvent:
        """Make one of the run's events, behind its fence."""
        facts: Body = {"id": new_id(), "run_id": self.run, "agent": self.agent}
        return log.of_ours(self.conversation, facts | payload, self.principal)._replace(attempt=self.attempt)


def claim(worker: str, agents: Collection[str], *, at_most: int) -> list[Claim]:
    """Take queued runs of these agents, oldest first, one per conversation; none of a paused or owned conversation.
    Replays run beside whatever waits, is paused or is held there."""
    taken: list[Claim] = []
    while len(taken) < at_most:
        found = _next(agents, at_most - len(taken))
        if not found:
            break
        failpoint("before-lease")
        claimed = _take_all(found, worker)
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
    """Answer ids of runs that may be taken, the first of each conversation."""
    if not agents:
        return []
    free = FREE.format(agents=", ".join(["%s"] * len(agents)))
    with connection.cursor() as cursor:
        cursor.execute(f"{free} ORDER BY r.id LIMIT %s", [*agents, at_most])
        found = cursor.fetchall()
        replays = [id_ for id_, kind, *_ in found if kind != "agent"]
        places = {place for _, kind, place, _ in found if kind == "agent"}
        if places and len(found) == at_most:  # ids of one millisecond have no order, and the rest was cut off
            among = ", ".join(["%s"] * len(places))
            cursor.execute(f"{free} AND r.kind='agent' AND r.conversation_id IN ({among})", [*agents, *places])
            found = cursor.fetchall()
    latest_first = sorted(((seq, place, id_) for id_, kind, place, seq in found if kind == "agent"), reverse=True)
    first = {place: id_ for _, place, id_ in latest_first}
    return [*first.values(), *replays]


def _take_all(found: Sequence[str], worker: str) -> list[Claim]:
    """Take them in one transaction; when another worker began one of their conversations meanwhile, one by one."""
    try:
        return _take(found, worker)
    except IntegrityError:
        taken: list[Claim] = []
        for run in found:
            with suppress(IntegrityError):
                taken += _take([run], worker)
        return taken


def _take(ids: Sequence[str], worker: str) -> list[Claim]:
    with writing():
        owners = Run.objects.filter(id__in=ids).values("conversation")
        locked = Conversation.objects.select_for_update().filter(id__in=owners).order_by("id")
        keys = dict(locked.values_list("id", "key"))
        may_begin = Q(conversation__in=Conversation.objects.free().filter(id__in=keys)) | Q(kind="replay")
        queued = Run.objects.filter(may_begin, id__in=ids, status="queued")
        runs = list(queued.order_by("queued_seq", "id"))
        until = database_time() + int(LEASE * 1e6)
        fields: dict[str, Any] = {"status": "running", "worker": worker[:100], "stop": "", "lease_until": until}
        Run.objects.filter(id__in=[run.id for run in runs]).update(attempt=F("attempt") + 1, **fields)
        claims = [_claimed(run, keys[run.conversation_id]) for run in runs]
        told: Body = {"event": "run.started", "worker": worker[:100]}
        log.append([claimed.event(told | _started(claimed)) for claimed in claims])
    return claims


def _claimed(run: Run, key: str) -> Claim:
    fit = (run.kind, run.input_seq, run.state, run.state_mac, run.sdk)
    return Claim(run.id, run.attempt + 1, key, run.agent, *fit)


def _started(claimed: Claim) -> Body:
    """Say which attempt it is, and of what kind where it is no agent's answer."""
    return {"attempt": claimed.attempt} | ({} if claimed.kind == "agent" else {"run_kind": claimed.kind})


def renew(claims: Collection[Claim]) -> dict[str, str]:
    """Hold on to these runs for another lease; answer what is asked of each that is still held: "", pause, stop…"""
    until = database_time() + int(LEASE * 1e6)
    mine = {one.run: one.attempt for one in claims}
    with writing():
        held = (
            Run.objects.filter(id__in=mine, status="running").select_for_update().values_list("id", "attempt", "stop")
        )
        asked = {run: stop for run, attempt, stop in held.order_by("id") if mine[run] == attempt}
        Run.objects.filter(id__in=asked).update(lease_until=until)
    return asked


def finish(claimed: Claim, payload: Body, *more: Body) -> None:
    """End a run: `payload` is its `run.done`, `run.failed`, `run.cancelled` or `run.incompatible`; `more` comes before.

    Raises `Fenced` when the run is not the worker's any more.
    """
    with writing():
        _hold(claimed, lease_until=None, state=None, state_mac=None)
        log.append([claimed.event(one) for one in (*more, payload)])


def wait(
    claimed: Claim, reason: str, *asked: Body, state: str, state_mac: str, sdk: str, about: Body | None = None
) -> None:
    """Put a run aside, with its state sealed; the worker is free. `asked` are its approval.requested; `about` is told
    beside the reason: of `server`, which MCP server it waits for.

    One that was asked to end meanwhile ends; one that was paused goes on when the pause is over already.
    """
    with writing():
        conversation = _hold(claimed, lease_until=None, state=state, state_mac=state_mac, sdk=sdk)
        if _ended_as_asked(claimed):
            return
        told: list[Body] = [*asked, {"event": "run.waiting", "reason": reason, **(about or {})}]
        if reason == "pause" and not conversation.is_held:
            told.append({"event": "run.resumed", "reason": "the pause was over"})
        log.append([claimed.event(one) for one in told])


def put_back(claimed: Claim, reason: str, *, sealed: tuple[str, str, str] | None = None) -> None:
    """Queue a run again for another worker: it goes on from `sealed` (state, its mac, its sdk), else from what it had.

    Only for a run none of whose calls was begun since that state. Raises `Fenced`.
    """
    with writing():
        kept = dict(zip(("state", "state_mac", "sdk"), sealed, strict=True)) if sealed else {}
        _hold(claimed, lease_until=None, **kept)
        if not _ended_as_asked(claimed):
            log.append([claimed.event({"event": "run.resumed", "reason": reason})])


def interrupt_dead() -> list[str]:
    """End runs whose worker was silent for a lease: `interrupted`, and what was executing is `unknown` for ever."""
    dead = Run.objects.filter(status="running", lease_until__lt=database_time())
    return [run.id for run in dead.order_by("id")[:100] if _interrupt(run)]


def _interrupt(run: Run) -> bool:
    with writing():
        conversation = Conversation.objects.locked(run.conversation_id)
        held = Run.objects.mine(run.id, run.attempt).filter(lease_until__lt=database_time())
        if not held.update(lease_until=None):
            return False
        why = f"the worker {run.worker} is gone; nothing was done again"
        told: Body = {"id": new_id(), "run_id": run.id, "agent": run.agent, "reason": why, "calls": _entered(run.id)}
        told |= _kind(run.kind)
        log.append([log.of_ours(conversation.key, {"event": "run.interrupted", **told}, SYSTEM)])
    return True


def wake(run: str, reason: str) -> bool:
    """Queue a run again that waits for something other than a person: it is there. False: it does not wait any more."""
    with writing():
        found = _run(run)
        conversation = Conversation.objects.locked(found.conversation_id)
        if not Run.objects.filter(id=run, status="waiting", reason="server").update(status="queued"):
            return False
        told: Body = {"event": "run.resumed", "id": new_id(), "run_id": run, "agent": found.agent, "reason": reason}
        log.append([log.of_ours(conversation.key, told, SYSTEM)])
    return True


def park(run: str, reason: str) -> bool:
    """End a queued run that no worker could go on with as `incompatible`. False: it is not queued any more."""
    with writing():
        found = _run(run)
        conversation = Conversation.objects.locked(found.conversation_id)
        if not Run.objects.filter(id=run, status="queued").update(state=None, state_mac=None):
            return False
        told: Body = {"id": new_id(), "run_id": run, "agent": found.agent, "reason": reason}
        told |= {"calls": entered} if (entered := _entered(run)) else {}
        log.append([log.of_ours(conversation.key, {"event": "run.incompatible", **told}, SYSTEM)])
    return True


def run_again(by: Who, run: str) -> str:
    """Queue a new run on the same input as one that ended badly; answer its id. Raises `NotFound`, `Conflict`."""
    with acting(by, "run_again", f"run:{run}", right="control") as principal:
        old = _run(run)
        conversation = Conversation.objects.locked(old.conversation_id)
        if old.kind == "replay":
            raise Conflict("a replay is asked for anew, on the page of its call", code="is_replay")
        if old.status not in ("failed", "cancelled", "interrupted", "incompatible"):
            raise Conflict(f"run {run} is {old.status}: only one that ended badly is run again")
        if not Agent.objects.filter(name=old.agent).exists():
            raise Conflict(f"no team has an agent {old.agent} any more: write to another one", code="no_agent")
        new = new_id()
        told: Body = {"run_kind": old.kind, "agent": old.agent, "input_seq": old.input_seq, "reason": f"again: {run}"}
        writer, by_whom = writing_as(principal)
        queued: Body = {"event": "run.queued", "id": new_id(), "run_id": new, **told, **by_whom}
        log.append([log.of_ours(conversation.key, queued, writer)])
        audit.enter(principal, "run_again", f"run:{run}", correlation={"conversation": conversation.key, "run": new})
    return new


def stop(by: Who, run: str) -> None:
    """Ask the worker to cancel a run, which it hears within a second; a run nobody holds is cancelled here.

    Its open questions are withdrawn in the same transaction, by `log.append`.
    """
    with acting(by, "cancel_run", f"run:{run}", right="control") as principal:
        found = _run(run)
        conversation = Conversation.objects.locked(found.conversation_id)
        if not end(principal, conversation, run, "cancel") and _run(run).status != "running":
            raise Conflict(f"run {run} is {_run(run).status} already")
        audit.enter(principal, "cancel_run", f"run:{run}", correlation={"conversation": conversation.key})


def end(principal: Principal, conversation: Conversation, run: str, how: str, reason: str = "") -> bool:
    """Have a run end, inside an action with the conversation locked; `how` is one of `ENDING`.

    The worker hears it within a second; a run nobody holds is cancelled here. False: it is over, or is ending so
    already.
    """
    writer, by_whom = writing_as(principal)
    found = _run(run)
    told: Body = {"id": new_id(), "run_id": run, "agent": found.agent, **_kind(found.kind), **by_whom}
    is_asked = ENDING[ENDING.index(how) :]
    if Run.objects.filter(id=run, status="running").exclude(stop__in=is_asked).update(stop=how):
        told |= {"event": "run.stopping", "how": how} | ({"reason": reason} if reason else {})
    elif Run.objects.filter(id=run, status__in=("queued", "waiting")).update(state=None, state_mac=None):
        told |= {"event": "run.cancelled", "reason": reason or f"by {principal}"}
        told |= {"calls": entered} if (entered := _entered(run)) else {}
    else:
        return False
    log.append([log.of_ours(conversation.key, told, writer)])
    return True


def _ended_as_asked(claimed: Claim) -> bool:
    """End a run that its worker lets go of before it heard that it should end."""
    if not Run.objects.filter(id=claimed.run, stop__in=ENDING).update(state=None, state_mac=None):
        return False
    told: Body = {"event": "run.cancelled", "reason": "asked to stop"}
    log.append([claimed.event(told | ({"calls": entered} if (entered := _entered(claimed.run)) else {}))])
    return True


def _hold(claimed: Claim, **fields: Any) -> Conversation:
    """Write the run's row if it is still the worker's; the conversation is locked first, and answered."""
    owner = Run.objects.values_list("conversation_id", flat=True).get(id=claimed.run)
    conversation = Conversation.objects.locked(owner)
    if not Run.objects.mine(claimed.run, claimed.attempt).update(**fields):
        raise Fenced(f"run {claimed.run} is not running in attempt {claimed.attempt} any more")
    return conversation


def _entered(run: str) -> list[str]:
    """Name the calls that were entered and have not ended; of a run that waits, those around the one it asks about."""
    return list(ToolCall.objects.filter(run=run, status="executing").values_list("id", flat=True))


def _kind(kind: str) -> Body:
    """Say of a replay's end that it is one: it is not run again from there."""
    return {"run_kind": kind} if kind == "replay" else {}


def _run(run: str) -> Run:
    found = Run.objects.filter(id=run).first()
    if found is None:
        raise NotFound(f"no run {run}")
    return found
