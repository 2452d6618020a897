"""Stop runs and queue them again: with the input of one that ended badly, or because what one waited for is available.

Called by pages, the API, control actions and workers. Lock order: conversation, run (law B).
"""

import json

from conversations.access.action_context import audited_action, event_author
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.core import principals
from conversations.core.errors import Conflict, NotFound
from conversations.core.ids import new_id
from conversations.core.principals import SYSTEM, Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.redacted_events import require_unredacted
from conversations.events.response_ids import PLAIN_MODEL
from conversations.models import Agent, Conversation, Event, Run, ToolCall
from conversations.models.run import ENDING, EXTERNAL, UNFINISHED
from conversations.runs import deliver_messages, leases
from conversations.runs.claims import Body


def cancel_run(by: Who, run: str) -> None:
    """Request that the worker cancel a run, which takes effect within a second; cancel a run that no worker holds
    directly.

    Its open approval requests are withdrawn in the same transaction, by `log.append`.
    """
    with audited_action(by, "cancel_run", f"run:{run}", right="control") as principal:
        row = _run(run)
        conversation = Conversation.objects.locked(row.conversation_id)
        if not end(principal, conversation, run, "cancel") and _run(run).status != "running":
            raise Conflict(f"run {run} is already {_run(run).status}")
        chain.add_entry(principal, "cancel_run", f"run:{run}", correlation={"conversation": conversation.key})


def end(principal: Principal, conversation: Conversation, run: str, how: str, reason: str = "") -> bool:
    """End a run, inside an action with the conversation locked; `how` is one of `ENDING`.

    The worker acts within a second; a run that no worker holds is cancelled here, and one whose worker is gone is
    interrupted. False: it has ended, or is already ending this way.
    """
    writer, by_whom = event_author(principal)
    row = _run(run)
    if leases.is_abandoned(row) and leases.interrupt_locked(row, conversation, principal):
        return True  # else its worker has just renewed it
    body: Body = {"id": new_id(), "run_id": run, "agent": row.agent, **row.end_fields, **by_whom}
    is_asked = ENDING[ENDING.index(how) :]
    if Run.objects.filter(id=run, status="running").exclude(stop__in=is_asked).update(stop=how):
        body |= {"event": "run.stopping", "how": how} | ({"reason": reason} if reason else {})
    elif Run.objects.filter(id=run, status__in=("queued", "waiting")).update(state=None, state_mac=None):
        body |= {"event": "run.cancelled", "reason": reason or f"by {principal}"}
        body |= {"calls": entered} if (entered := ToolCall.objects.executing_in(run)) else {}
    else:
        return False
    log.append([log.from_internal(conversation.key, body, writer)])
    return True


def end_as_incompatible(run: str, reason: str) -> bool:
    """End a queued run that no worker could continue, as `incompatible`. False: it is no longer queued."""
    with write_transaction():
        row = _run(run)
        conversation = Conversation.objects.locked(row.conversation_id)
        if not Run.objects.filter(id=run, status="queued").update(state=None, state_mac=None):
            return False
        fields: Body = {"id": new_id(), "run_id": run, "agent": row.agent, "reason": reason}
        fields |= {"calls": entered} if (entered := ToolCall.objects.executing_in(run)) else {}
        log.append([log.from_internal(conversation.key, {"event": "run.incompatible", **fields}, SYSTEM)])
    return True


def run_again(by: Who, run: str) -> str:
    """Queue a new run with the input of one that ended badly; return its id. Raises `NotFound`, `Conflict`
    (already_run_again while a newer run of that input has not ended, or if one is done)."""
    with audited_action(by, "run_again", f"run:{run}", right="control") as principal:
        old = _run(run)
        conversation = Conversation.objects.locked(old.conversation_id)
        if old.kind == "replay":
            raise Conflict("replay the call again from its page instead", code="is_replay")
        if old.kind == "recording":
            raise Conflict("this run is part of the demo recording", code="is_recording")
        if old.kind == EXTERNAL:
            raise Conflict(
                "this run represents an external agent and cannot be run again from here", code="is_external"
            )
        if _taken_as(old) not in ("failed", "cancelled", "interrupted", "incompatible"):
            raise Conflict(f"run {run} is {old.status}: only runs that did not finish can run again")
        _require_no_newer(old)
        if not Agent.objects.filter(name=old.agent).exists():
            raise Conflict(f"no team has the agent {old.agent} anymore: write to another agent", code="no_agent")
        require_unredacted(old.conversation_id, old.input_seq)
        new = new_id()
        fields: Body = {"run_kind": old.kind, "agent": old.agent, "input_seq": old.input_seq, "reason": f"again: {run}"}
        writer, by_whom = event_author(principal)
        queued: Body = {"event": "run.queued", "id": new_id(), "run_id": new, **fields, **by_whom}
        log.append([log.from_internal(conversation.key, queued, writer)])
        if old.agent == PLAIN_MODEL or Agent.objects.filter(name=old.agent, team=old.team).exists():
            Run.objects.filter(id=new).update(team=old.team)
        chain.add_entry(
            principal, "run_again", f"run:{run}", correlation={"conversation": conversation.key, "run": new}
        )
    return new


def _taken_as(run: Run) -> str:
    """Return the outcome of the message that a run answers: if it was delivered to another run, the outcome of that
    one."""
    delivery = deliver_messages.deliveries(run.conversation_id, [run]).get(run.id)
    return delivery.into.status if delivery is not None else run.status


def _require_no_newer(old: Run) -> None:
    """Raise Conflict, naming who and which, if the input of a run that ended badly has a newer run that did not."""
    newer = Run.objects.filter(conversation=old.conversation_id, kind=old.kind, agent=old.agent, parent_call=None)
    newer = newer.filter(input_seq=old.input_seq, queued_seq__gt=old.queued_seq).order_by("-queued_seq")
    for run in newer.defer("state"):
        if (status := _taken_as(run)) in (*UNFINISHED, "done"):
            queued = Event.objects.get(conversation=old.conversation_id, seq=run.queued_seq)
            by = principals.doer(queued.principal, str(json.loads(queued.body).get("by") or ""))
            raise Conflict(f"{by} already ran it again: run {run.id} is {status}", code="already_run_again")


def requeue_waiting_for_server(run: str, reason: str) -> bool:
    """Queue a run again that waited for an MCP server and can now continue. False: it no longer waits."""
    with write_transaction():
        row = _run(run)
        conversation = Conversation.objects.locked(row.conversation_id)
        if not Run.objects.filter(id=run, status="waiting", reason="server").update(status="queued"):
            return False
        body: Body = {"event": "run.resumed", "id": new_id(), "run_id": run, "agent": row.agent, "reason": reason}
        log.append([log.from_internal(conversation.key, body, SYSTEM)])
    return True


def _run(run: str) -> Run:
    row = Run.objects.filter(id=run).first()
    if row is None:
        raise NotFound(f"there is no run {run}")
    return row
