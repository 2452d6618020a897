"""Approvals: asked by a run that waits, decided once by a person (design 3.1, law E)."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.conf import settings

from conversations import audit, log, replayable
from conversations.actions.acting import acting, writing_as
from conversations.actions.runs import Body
from conversations.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.ids import new_id
from conversations.models import Approval, Conversation, Event, Run
from conversations.principals import Principal
from conversations.rights import Who
from conversations.tools import arguments

DECISIONS = ("approve", "reject", "respond", "edit")
MOST_OUTPUT = 256 * 1024  # characters of an answer that a person gives


class Answer(NamedTuple):
    """What is decided. `output` belongs to respond, `arguments` (an object, or its text) to edit."""

    decision: str
    message: str = ""
    reason: str = ""
    output: str | None = None
    arguments: dict[str, Any] | str | None = None


def decide(by: Who, approval: str, decision: str, **more: Any) -> Approval:
    """Decide a tool call; the run is queued again once nothing more is pending. `more` are the fields of `Answer`.

    Raises `Conflict` when somebody was first (code already_decided) or the question is over (cancelled, expired,
    run_over), `NotAllowed` without the right or by four eyes, `NotFound`, `Invalid`.
    """
    answer = Answer(decision, **more)
    with acting(by, "decide", f"approval:{approval}", right="decide") as principal:
        found = Approval.objects.filter(id=approval).first()
        if found is None:
            raise NotFound(f"no approval {approval}")
        conversation = Conversation.objects.locked(found.conversation_id)
        found.refresh_from_db()
        if found.status != "pending":
            raise _over(found)
        run = _waiting(found)
        _require_other_eyes(principal, run)
        replayable.require_second(principal, found, run)
        told = _told(found, answer)
        if not Approval.objects.filter(id=approval, status="pending").update(status="decided"):
            found.refresh_from_db()
            raise _over(found)
        _tell(principal, conversation.key, run, told)
        facts = {"conversation": conversation.key, "run": run.id, "call": found.tool_call, "decision": decision}
        audit.enter(
            principal, "decide", f"approval:{approval}", reason=answer.reason, correlation=facts,
            after=audit.digest({name: told[name] for name in ("decision", "output", "args_raw") if name in told}),
        )  # fmt: skip
    found.refresh_from_db()
    return found


def wrote_input(principal: Principal, run: Run) -> bool:
    """Tell whether somebody wrote or sent what a run answers, as themselves or as an agent, or had it run again."""
    seqs = (run.input_seq, run.queued_seq)
    behind = Event.objects.filter(conversation=run.conversation_id, seq__in=seqs)
    return str(principal) in set(behind.values_list("principal", flat=True))


def _waiting(found: Approval) -> Run:
    run = Run.objects.get(id=found.run)
    if run.status != "waiting":
        raise Conflict(f"the run does not wait any more: it is {run.status}", code="run_over")
    return run


def _require_other_eyes(principal: Principal, run: Run) -> None:
    if settings.CONFIG.four_eyes and wrote_input(principal, run):
        raise NotAllowed(
            f"{principal} wrote or sent what this run answers: somebody else decides (four eyes)", code="four_eyes"
        )


def _told(found: Approval, answer: Answer) -> Body:
    """Make the `approval.decided` of an answer. Raises Invalid when it is none."""
    told: Body = {"event": "approval.decided", "approval_id": found.id, "tool_call": found.tool_call}
    told["decision"] = answer.decision
    told |= {name: text for name in ("message", "reason") if (text := getattr(answer, name))}
    if answer.decision not in DECISIONS:
        raise Invalid(f"expected one of {', '.join(DECISIONS)}", field="decision")
    if answer.output is not None and answer.decision != "respond":
        raise Invalid("an output belongs to the decision respond", field="output")
    if answer.arguments is not None and answer.decision != "edit":
        raise Invalid("arguments belong to the decision edit", field="arguments")
    if answer.decision == "respond":
        return told | {"output": _output(answer.output)}
    if answer.decision == "edit":
        return told | _edited(found, answer.arguments)
    return told


def _output(given: str | None) -> str:
    if given is None:
        raise Invalid("expected the output that the agent is given", field="output")
    if len(given) > MOST_OUTPUT:
        raise Invalid(f"expected {MOST_OUTPUT:,} characters at most", field="output")
    return given


def _edited(found: Approval, given: dict[str, Any] | str | None) -> Body:
    if given is None:
        raise Invalid("expected the arguments to run with", field="arguments")
    asked = Event.objects.filter(conversation=found.conversation_id, seq=found.asked_seq)
    schema = json.loads(asked.values_list("body", flat=True).get()).get("schema") or ""
    read, text = arguments.read(given, schema)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"args": read, "args_raw": text, "digest": digest}


def _tell(principal: Principal, key: str, run: Run, told: Body) -> None:
    """Append the decision and, when it was the last one that the run waited for, queue it."""
    writer, by_whom = writing_as(principal)
    facts: Body = {"run_id": run.id, "agent": run.agent, **by_whom}
    log.append([log.of_ours(key, {"id": new_id(), **facts} | told, writer)])
    is_last = not Approval.objects.filter(run=run.id, status="pending").exists()
    if is_last and Run.objects.filter(id=run.id, status="waiting").update(status="queued"):
        resumed: Body = {"event": "run.resumed", "id": new_id(), **facts, "reason": told["decision"]}
        log.append([log.of_ours(key, resumed, writer)])


def _over(found: Approval) -> Conflict:
    at = datetime.fromtimestamp((found.decided_at or 0) / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if found.status == "cancelled":
        words = f"the question was withdrawn: its run was ended by {found.decided_by} at {at}"
        return Conflict(words, code="cancelled")
    if found.status == "expired":
        return Conflict(f"the question is over: its time was up at {at}", code="expired")
    return Conflict(f"{found.decided_by} decided already: {found.decision}, at {at}", code="already_decided")
