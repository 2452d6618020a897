"""Claim runs for a worker, renew their leases, begin their tool calls, and suspend or requeue them (law F).

Called by workers. A worker identifies a run it holds by its `Claim`. Its events are stored only while the claim is
valid; otherwise `Fenced` is raised and the worker stops at once. Lock order: conversation, run (law B).
"""

import hashlib
import json
import random
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from django.db import IntegrityError, OperationalError, connection
from django.db.backends.utils import CursorWrapper

from conversations.core import principals
from conversations.core.errors import Fenced
from conversations.core.failpoints import failpoint
from conversations.core.ids import new_id
from conversations.core.principals import Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log import lock_waits
from conversations.events.log.records import NewEvent
from conversations.events.log.sql import marks
from conversations.events.payload import clean_text
from conversations.models import Conversation, Run, ToolCall
from conversations.models.run import ENDING
from conversations.runs import leases

Body = dict[str, object]

ENTERABLE = ("called", "approved")  # statuses of a call that may be entered


class Claim(NamedTuple):
    """A run that a worker holds. `state` is the signed state with which it was suspended; None at the first start."""

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
        """The principal of the run's events."""
        return principals.run_principal(self.agent)

    def event(self, payload: Body) -> NewEvent:
        """Create an event of the run that is stored only while the claim is valid. What is no Unicode text becomes
        U+FFFD: a model, or a tool that lists files, may return a lone surrogate."""
        fields: Body = {"id": new_id(), "run_id": self.run, "agent": self.agent} | payload
        try:
            event = log.from_internal(self.conversation, fields, self.principal)
        except UnicodeEncodeError:
            fields = json.loads(clean_text(json.dumps(fields, ensure_ascii=False)))
            event = log.from_internal(self.conversation, fields, self.principal)
        return event._replace(attempt=self.attempt)


class ServedAgents(NamedTuple):
    """The agents of one team that a worker serves; those of `entry` are the ones that messages may be sent to. `hosts`
    are other teams whose runs of these agents it takes too: a plain model's run has the team that hosts its tools."""

    team: str
    names: Collection[str]
    entry: Collection[str]
    hosts: Collection[str] = ()


def claim(worker: str, agents: ServedAgents, *, at_most: int) -> list[Claim]:
    """Claim queued runs of these agents, oldest first: one agent's run per conversation, and none of a paused or
    taken-over one; replays regardless of other runs, pauses and takeovers.

    A worker names the team of its agents, since another team may have one of the same name: it gets the runs that are
    its own team's, and of those that have no team yet the ones that no other team comes before it for. Conversations
    that somebody else has locked are left out; if there is no other, it waits for one of them for 0.1 s.
    """
    taken: list[Claim] = []
    left: dict[int, str] = {}
    while len(taken) < at_most and (runs := _next(agents, at_most - len(taken), without=left)):
        failpoint("before-lease")
        claimed = _take_all(list(runs), worker, agents.team)
        started = {each.run for each in claimed}
        left |= {conversation: run for run, conversation in runs.items() if run not in started}
        taken += claimed
    if left and not taken:  # any of them: the same one might stay locked, while another is locked often but briefly
        return _take_waiting(random.choice(list(left.values())), worker, agents.team)
    return taken


# As text: a worker asks this each time a run ends, and Django needs 4 ms to write it. `|| ''` keeps the planner from
# the index over all runs that an agent ever had; that of the queued ones is small. A run without a team is for the
# team whose agent may be addressed; if none may, for the team that ran last in its conversation; else for the first.
CLAIMABLE_RUNS_SQL = """SELECT r.id, r.kind, r.conversation_id, r.queued_seq FROM conversations_run r
 JOIN conversations_conversation c ON c.id=r.conversation_id
 WHERE r.status='queued' AND r.kind NOT IN ('recording', 'external') AND (r.agent || '') IN ({agents})
 AND (r.kind='replay' OR c.state='open' AND c.owner='')
 AND (r.kind<>'agent' OR NOT EXISTS (SELECT 1 FROM conversations_run b WHERE b.conversation_id=r.conversation_id
  AND b.kind='agent' AND b.parent_call IS NULL AND b.status IN ('running', 'waiting')))
 AND (r.team IN ({teams}) OR r.team='' AND ((r.agent || '') IN ({entry}) OR NOT EXISTS
 (SELECT 1 FROM conversations_agent a WHERE a.name=r.agent AND a.team<>%s AND (a.is_entry OR a.team=
  (SELECT b.team FROM conversations_run b WHERE b.conversation_id=r.conversation_id AND b.team<>''
   ORDER BY b.queued_seq DESC LIMIT 1)))))"""

_LOCK_SQL = """SELECT r.id FROM conversations_run r JOIN conversations_conversation c ON c.id=r.conversation_id
 WHERE r.id IN ({marks}) ORDER BY c.id FOR UPDATE OF c"""
_STARTABLE_SQL = """SELECT r.id, r.attempt+1, c.key, r.agent, r.kind, r.input_seq, r.state, r.state_mac, r.sdk
 FROM conversations_run r JOIN conversations_conversation c ON c.id=r.conversation_id
 WHERE r.id IN ({marks}) AND r.status='queued' AND (r.kind='replay' OR c.state='open' AND c.owner='')
 ORDER BY r.queued_seq, r.id"""
_START_SQL = """UPDATE conversations_run SET attempt=attempt+1, status='running', worker=%s, stop='', lease_until=%s,
 team=COALESCE(NULLIF(team, ''), %s) WHERE id IN ({marks})"""


def _next(agents: ServedAgents, at_most: int, *, without: Collection[int]) -> dict[str, int]:
    """Return runs that may be claimed, each with its conversation: the first agent's run of each conversation, and all
    replays. `without`: conversations to leave out."""
    if not agents.names:
        return {}
    teams, entry = [agents.team, *agents.hosts], agents.entry or ("",)
    sql = CLAIMABLE_RUNS_SQL.format(agents=marks(len(agents.names)), teams=marks(len(teams)), entry=marks(len(entry)))
    parameters = [*agents.names, *teams, *entry, agents.team]
    others = f" AND r.conversation_id NOT IN ({marks(len(without))})" if without else ""
    with connection.cursor() as cursor:
        cursor.execute(f"{sql}{others} ORDER BY r.id LIMIT %s", [*parameters, *without, at_most])
        rows = cursor.fetchall()
        replays = {id_: conversation for id_, kind, conversation, _ in rows if kind != "agent"}
        conversations = {conversation for _, kind, conversation, _ in rows if kind == "agent"}
        if conversations and len(rows) == at_most:  # ids of one millisecond have no order, and the rest was cut off
            among = marks(len(conversations))
            cursor.execute(
                f"{sql} AND r.kind='agent' AND r.conversation_id IN ({among})", [*parameters, *conversations]
            )
            rows = cursor.fetchall()
    latest_first = sorted(
        ((seq, conversation, id_) for id_, kind, conversation, seq in rows if kind == "agent"), reverse=True
    )
    first = {conversation: id_ for _, conversation, id_ in latest_first}
    return {id_: conversation for conversation, id_ in first.items()} | replays


def _take_all(ids: Sequence[str], worker: str, team: str) -> list[Claim]:
    """Claim them in one transaction, or one by one if another worker started a run in one of their conversations."""
    try:
        return _take(ids, worker, team)
    except IntegrityError:
        taken: list[Claim] = []
        for run in ids:
            with suppress(IntegrityError):
                taken += _take([run], worker, team)
        return taken


def _take_waiting(run: str, worker: str, team: str) -> list[Claim]:
    """Claim a run, waiting briefly for its conversation."""
    try:
        with suppress(IntegrityError):
            return _take([run], worker, team, wait=lock_waits.BRIEFLY)
    except OperationalError as error:
        if not lock_waits.is_timeout(error):
            raise
    return []


def _take(ids: Sequence[str], worker: str, team: str, *, wait: lock_waits.LockWait | None = None) -> list[Claim]:
    with write_transaction(), connection.cursor() as cursor:
        free = _lock_conversations(cursor, ids, wait)
        if not free:
            return []
        cursor.execute(_STARTABLE_SQL.format(marks=marks(len(free))), free)
        claims = [Claim(*row) for row in cursor.fetchall()]
        if claims:
            taken = [claimed.run for claimed in claims]
            lease: list[str | int] = [worker[:100], leases.end_of_new(), team]
            cursor.execute(_START_SQL.format(marks=marks(len(taken))), [*lease, *taken])
        body: Body = {"event": "run.started", "worker": worker[:100]}
        log.append([claimed.event(body | _started(claimed)) for claimed in claims])
    return claims


def _lock_conversations(cursor: CursorWrapper, ids: Sequence[str], wait: lock_waits.LockWait | None) -> list[str]:
    """Lock the conversations of these runs, without `wait` only those that nobody else has locked; return their runs.
    On SQLite the transaction holds the whole file. Apart from what reads the runs: a statement that waits for a row
    sees the others as they were."""
    if connection.vendor == "sqlite":
        return list(ids)
    lock_waits.set_lock_timeout(cursor, wait)
    cursor.execute(_LOCK_SQL.format(marks=marks(len(ids))) + ("" if wait else " SKIP LOCKED"), ids)
    return [run for (run,) in cursor.fetchall()]


def _started(claimed: Claim) -> Body:
    """Return the fields of `run.started`: the attempt, and the kind unless it is an agent's run."""
    return {"attempt": claimed.attempt} | ({} if claimed.kind == "agent" else {"run_kind": claimed.kind})


def renew(claims: Collection[Claim]) -> dict[str, str]:
    """Renew the leases of these runs; return what is requested of each that is still held: "", pause, stop…"""
    if not claims:
        return {}
    mine = {claimed.run: claimed.attempt for claimed in claims}
    with write_transaction():
        held = (
            Run.objects.filter(id__in=mine, status="running").select_for_update().values_list("id", "attempt", "stop")
        )
        stops = {run: stop for run, attempt, stop in held.order_by("id") if mine[run] == attempt}
        Run.objects.filter(id__in=stops).update(lease_until=leases.end_of_new())  # not before the wait for the lock
    return stops


def our_call_id(run: str, call_id: str | None, nth: int) -> str:
    """Return our id of a call: the same in every attempt of the run, so that no call is entered twice."""
    noise = hashlib.sha256(f"{run}\0{call_id}\0{nth}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"{run[:18]}-{noise[:4]}-{noise[4:16]}" if len(run) >= 18 else noise[:36]


def begin_execution(claimed: Claim, payload: Body) -> None:
    """Commit that the call is executing. Raises `Fenced`: do not call the tool, end the attempt.

    `payload` is the tool step with `status: start` and `tool_call`. A call that was entered before, in any attempt, is
    never entered again; the log checks the run's own fence.
    """
    call = str(payload["tool_call"])
    with write_transaction():
        Conversation.objects.locked(key=claimed.conversation)
        status = ToolCall.objects.filter(id=call).values_list("status", flat=True).first()
        # The conditional update only guards against a race; the fold of the tool step sets the same status.
        if status is not None and not ToolCall.objects.filter(id=call, status__in=ENTERABLE).update(status="executing"):
            raise Fenced(f"call {call} is {status} and will not run again")
        log.append([claimed.event(payload)])


def suspend(
    claimed: Claim,
    reason: str,
    *requests: Body,
    state: str | None,
    state_mac: str | None,
    sdk: str | None,
    about: Body | None = None,
) -> None:
    """Suspend a run: record that it waits, with its signed state; the worker is then free. `requests` are its
    `approval.requested` events; `about` is stored beside the reason: for `server`, the MCP server that it waits for.

    A run that was asked to end in the meantime ends; one whose pause is already over continues.
    """
    with write_transaction():
        conversation = _write_held(claimed, lease_until=None, state=state, state_mac=state_mac, sdk=sdk)
        if _ended_as_asked(claimed):
            return
        bodies: list[Body] = [*requests, {"event": "run.waiting", "reason": reason, **(about or {})}]
        if reason == "pause" and not conversation.is_held:
            bodies.append({"event": "run.resumed", "reason": "the pause ended"})
        log.append([claimed.event(body) for body in bodies])


def requeue(claimed: Claim, reason: str, *, signed_state: tuple[str, str, str] | None = None) -> None:
    """Queue a run again for another worker: it continues from `signed_state` (state, its MAC, its SDK version), or
    else from its earlier state.

    Only for a run that has started no call since that state. Raises `Fenced`.
    """
    with write_transaction():
        state_fields = dict(zip(("state", "state_mac", "sdk"), signed_state, strict=True)) if signed_state else {}
        _write_held(claimed, lease_until=None, **state_fields)
        if not _ended_as_asked(claimed):
            log.append([claimed.event({"event": "run.resumed", "reason": reason})])


def _ended_as_asked(claimed: Claim) -> bool:
    """End a run that its worker releases before it received the request to end it."""
    if not Run.objects.filter(id=claimed.run, stop__in=ENDING).update(state=None, state_mac=None):
        return False
    body: Body = {"event": "run.cancelled", "reason": "asked to stop"}
    calls = ToolCall.objects.executing_in(claimed.run)
    log.append([claimed.event(body | ({"calls": calls} if calls else {}))])
    return True


def _write_held(claimed: Claim, **fields: Any) -> Conversation:
    """Update the run's row if the worker still holds it; lock and return the conversation first."""
    conversation_id = Run.objects.values_list("conversation_id", flat=True).get(id=claimed.run)
    conversation = Conversation.objects.locked(conversation_id)
    if not Run.objects.mine(claimed.run, claimed.attempt).update(**fields):
        raise Fenced(f"run {claimed.run} is no longer running in attempt {claimed.attempt}")
    return conversation
