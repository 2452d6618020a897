"""Apply answers to interrupts as decisions on approvals: each is decided once, by a principal with the permission to
(§3.7). Sync, in a thread.

The decider is the sender of the request, by its bearer token; nothing in an answer can change that. A request that
somebody else decided first, in the inbox or with another client, stays decided: the run is streamed as it continued.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ag_ui.core import Interrupt, ResumeEntry
from django.db.models import QuerySet

from conversations.access.authentication import Caller
from conversations.asgi.agui.front_end_input import FrontEndInput
from conversations.asgi.agui.run_encoder import BUDGET, RunSegment, interrupt_of, read
from conversations.core.errors import Conflict, Invalid, SwitchboardError
from conversations.models import Approval, Event, Response, Run, ToolCall
from conversations.runs.approvals import decide

Answer = dict[str, Any]  # the decision, and what belongs to it
KIND = "agent"  # of the runs whose approval requests are answered here


class ResumedRun(NamedTuple):
    """A run that continues after `seq`: what is known of it, what it still waits for, and the answers that were
    ignored."""

    segment: RunSegment
    seq: int
    open: list[Interrupt]
    warnings: list[str]


def resume(caller: Caller, request: FrontEndInput) -> ResumedRun | None:
    """Apply the answers; None if no answer is for a request of this thread.

    Each answer is decided by itself: one that is refused becomes a warning. Raises `Invalid` for an unclear answer,
    before anything is decided, and the first refusal (`Invalid`, `NotAllowed`) if no answer took effect.
    """
    rows = _rows(request.thread, [entry.interrupt_id for entry in request.resume])
    answers = [
        (f"resume[{index}]", entry.interrupt_id, answer_of(entry, f"resume[{index}]"))
        for index, entry in enumerate(request.resume)
        if entry.interrupt_id in rows
    ]
    if not answers:
        return None
    warnings = [
        f"{entry.interrupt_id[:80]!r} is not an interrupt of this thread"
        for entry in request.resume
        if entry.interrupt_id not in rows
    ]
    refusals = []
    for field, approval, answer in answers:
        try:
            decide.decide(caller.principal, approval, answer.pop("decision"), **answer)
        except Conflict as error:  # somebody was first, or its time was up
            warnings.append(error.message)
        except SwitchboardError as error:
            warnings.append(f"{field}: {error.full_message}")
            error.field = error.field and f"{field}.payload"
            refusals.append(error)
    if len(refusals) == len(answers):
        raise refusals[0]
    newest = max((rows[approval] for _, approval, _ in answers), key=lambda row: row.asked_seq)
    return _continued(request, newest, warnings)


def require_none_open(thread: str) -> None:
    """Raise `Conflict` if a run of the thread waits for answers, which an ordinary message does not contain."""
    rows = Approval.objects.open().filter(conversation__key=thread, run__in=_runs(thread))
    if ids := list(rows.values_list("id", flat=True)[:10]):
        message = f"this thread waits for answers to {', '.join(ids)}: send them as resume"
        raise Conflict(message, code="interrupt_open")


def answer_of(entry: ResumeEntry, field: str) -> Answer:
    """Return the decision that an answer expresses. Raises `Invalid`: an unclear answer approves nothing."""
    if entry.status == "cancelled":
        return {"decision": "reject", "message": "The question was dismissed."}
    given: Any = entry.payload
    if isinstance(given, bool):
        given = {"approved": given}
    if not isinstance(given, dict):
        raise Invalid('must be {"approved": true} or {"approved": false}', field=f"{field}.payload")
    message = given.get("message", given.get("reason"))
    words: Answer = {"message": message} if isinstance(message, str) else {}
    if given.get("approved") is False:
        return {"decision": "reject", **words}
    if isinstance(given.get("output"), str):
        return {"decision": "respond", "output": given["output"], **words}
    if given.get("approved") is not True:
        raise Invalid("must be true or false", field=f"{field}.payload.approved")
    if (arguments := given.get("editedArgs")) is not None:
        if not isinstance(arguments, dict):
            raise Invalid("must be an object", field=f"{field}.payload.editedArgs")
        return {"decision": "edit", "arguments": arguments, **words}
    return {"decision": "approve", **words}


def _rows(thread: str, ids: Iterable[str]) -> dict[str, Approval]:
    fit = [id_ for id_ in ids if "\0" not in id_ and len(id_) <= 64]
    rows = Approval.objects.filter(id__in=fit, conversation__key=thread, run__in=_runs(thread))
    return {row.id: row for row in rows}


def _runs(thread: str) -> Any:  # a queryset; its generic form names Django's own
    return Run.objects.filter(conversation__key=thread, kind=KIND).values("id")


def _continued(request: FrontEndInput, approval: Approval, warnings: list[str]) -> ResumedRun:
    run, here = approval.run, {"conversation": approval.conversation_id, "run": approval.run}
    waited = Event.objects.filter(**here, kind="run.waiting", seq__gt=approval.asked_seq).order_by("seq")
    seq = waited.values_list("seq", flat=True).first() or approval.asked_seq
    calls = _streamed_calls(approval, seq)
    ended = calls.filter(finished_seq__lte=seq)
    response = Response.objects.filter(run=run).values_list("id", flat=True).first() or ""
    agent = Run.objects.values_list("agent", flat=True).get(id=run)
    known, over = (frozenset(rows.values_list("id", flat=True)) for rows in (calls, ended))
    turns = frozenset(_turns_said(approval, seq))
    segment = RunSegment(request.thread, request.run, run, response, agent, known, over, turns)
    return ResumedRun(segment, seq, _still_open(approval), warnings)


def _streamed_calls(approval: Approval, seq: int) -> QuerySet[ToolCall]:
    """Return the calls of the run itself, up to an event: none of those inside a call, and none about a budget."""
    calls = ToolCall.objects.filter(run=approval.run, called_seq__lte=seq).exclude(origin=BUDGET)
    began = Event.objects.filter(conversation=approval.conversation_id, seq__in=calls.values("called_seq"))
    inner = [at for at, body in began.values_list("seq", "body") if read(body).parent_call is not None]
    return calls.exclude(called_seq__in=inner)


def _turns_said(approval: Approval, seq: int) -> list[int]:
    outputs = Event.objects.filter(conversation=approval.conversation_id, run=approval.run, kind="output")
    fields = map(read, outputs.filter(seq__lte=seq).values_list("body", flat=True))
    return [output.turn for output in fields if output.turn is not None and output.parent_call is None]


def _still_open(approval: Approval) -> list[Interrupt]:
    rows = Approval.objects.open().filter(run=approval.run)
    requests = Event.objects.filter(conversation=approval.conversation_id, seq__in=rows.values("asked_seq"))
    return [interrupt_of(read(body)) for body in requests.order_by("seq").values_list("body", flat=True)]
