"""Manage leases of runs: how long a worker may be silent, which leases have expired, and the runs of workers that are
gone (law F).

Taken and renewed in `claims`; checked by workers periodically and at start, and when a person stops a run.
"""

import threading
import time
from collections.abc import Callable, Iterable

from django.db.models import Q

from conversations.access.action_context import event_author
from conversations.core import node_heartbeat
from conversations.core.database_clock import database_now
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM, Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.models import Conversation, Run, ToolCall
from conversations.runs.act_on_each import act_on_each

RUN_LEASE_S = 15.0  # a worker may be silent as long
CLOCK_SLACK_S = 5.0  # a database's clock may go back so far without a lease being void

_RunLease = tuple[str, int, int | None]  # a run, its attempt, the end of its lease

_since: dict[_RunLease, float] = {}
_lock = threading.Lock()


def end_of_new() -> int:
    """Return the end of a lease that is taken or renewed now, in µs UTC by the database's clock."""
    return database_now() + int(RUN_LEASE_S * 1e6)


def interrupt_expired(is_held: Callable[[Run], bool] = lambda _: False) -> list[str]:
    """End runs whose worker was silent for a lease: they become `interrupted`, and calls that were executing become
    `unknown` permanently. Not those that the caller holds itself: it renews them late, but is not gone.

    A lease that ends later than any valid one was taken by a clock that was ahead; an agent's run or a replay has none
    if a rebuild made its row again. Both expire if they were not renewed for the length of a lease, by this process's
    own clock.
    """
    now = database_now()
    is_void = Q(lease_until__gt=_furthest(now)) | Q(lease_until=None, kind__in=("agent", "replay"))
    dead = list(Run.objects.filter(status="running", lease_until__lt=now).order_by("id")[:100])
    void = list(Run.objects.filter(is_void, status="running").order_by("id")[:100])
    left = [run for run in (*dead, *_unrenewed(void, RUN_LEASE_S)) if not is_held(run)]
    return [run.id for run in act_on_each(left, _interrupt)]


def interrupt_all() -> list[str]:
    """End all runs that workers hold, whatever their leases: at the start of the only process that runs agents."""
    left = list(Run.objects.filter(status="running").order_by("id"))
    return [run.id for run in left if _interrupt(run)]


def interrupt_queued(why: str) -> int:
    """End all runs that wait for a worker, while nobody else writes; return how many."""
    queued = list(Run.objects.filter(status="queued").select_related("conversation").order_by("id"))
    Run.objects.filter(status="queued").update(state=None, state_mac=None)
    for run in queued:
        fields: dict[str, object] = {"id": new_id(), "run_id": run.id, "agent": run.agent, "reason": why}
        fields |= run.end_fields
        fields |= {"calls": entered} if (entered := ToolCall.objects.executing_in(run.id)) else {}
        log.append([log.from_internal(run.conversation.key, {"event": "run.interrupted", **fields}, SYSTEM)])
    return len(queued)


def is_abandoned(run: Run) -> bool:
    """Return whether no worker can hold a running run: its lease has expired, or is invalid and its worker is gone."""
    now, until = database_now(), run.lease_until
    if run.status != "running" or until is None:
        return False
    return until < now or (
        until > _furthest(now) and not node_heartbeat.is_alive(node_heartbeat.worker_node(run.worker))
    )


def interrupt_locked(run: Run, conversation: Conversation, by: Principal) -> bool:
    """End a run whose lease its worker did not renew, with its conversation locked. False: it was renewed since it was
    read."""
    if not Run.objects.mine(run.id, run.attempt).filter(lease_until=run.lease_until).update(lease_until=None):
        return False
    writer, by_whom = (by, {}) if by == SYSTEM else event_author(by)
    why = f"{_reason(run)}; nothing was repeated"
    calls = ToolCall.objects.executing_in(run.id)
    fields: dict[str, object] = {"id": new_id(), "run_id": run.id, "agent": run.agent, "reason": why, "calls": calls}
    fields |= run.end_fields | by_whom
    log.append([log.from_internal(conversation.key, {"event": "run.interrupted", **fields}, writer)])
    return True


def _reason(run: Run) -> str:
    """Say what became of a run's worker: one that was seen after the lease had ended has outlived it."""
    if run.lease_until and node_heartbeat.is_alive(node_heartbeat.worker_node(run.worker), after=run.lease_until):
        return f"the worker {run.worker} did not renew its lease in time (no database, or too busy)"
    return f"the worker {run.worker} is gone"


def _interrupt(run: Run) -> bool:
    """End a run if it was not renewed since it was read."""
    with write_transaction():
        conversation = Conversation.objects.locked(run.conversation_id)
        return interrupt_locked(run, conversation, SYSTEM)


def _furthest(now: int) -> int:
    """Return the latest possible end of a lease, in µs UTC by the database's clock."""
    return now + int((RUN_LEASE_S + CLOCK_SLACK_S) * 1e6)


def _unrenewed(runs: Iterable[Run], for_s: float) -> list[Run]:
    """Return those of these runs that have had the same lease for this many seconds; the others are watched from now
    on.

    Runs that are not among them anymore are no longer watched.
    """
    now = time.monotonic()
    with _lock:
        watched = {held: (_since.get(held, now), run) for run in runs for held in [_lease_of(run)]}
        _since.clear()
        _since.update({held: since for held, (since, _) in watched.items()})
        return [run for since, run in watched.values() if now - since >= for_s]


def _lease_of(run: Run) -> _RunLease:
    return run.id, run.attempt, run.lease_until
