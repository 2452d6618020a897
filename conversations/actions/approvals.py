"""Approvals: asked by a run that waits, decided once by a person (design 3.1, law E)."""

import hashlib
import json
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from conversations import always, audit, log, policy, replayable, terms
from conversations.actions.acting import acting, writing_as
from conversations.actions.runs import Body
from conversations.errors import Conflict, Invalid, NotAllowed, NotFound, SwitchboardError
from conversations.ids import new_id
from conversations.models import AlwaysRule, Approval, Conversation, Event, Run
from conversations.principals import Principal
from conversations.rights import Who
from conversations.tools import arguments

DECISIONS = ("approve", "reject", "respond", "edit")
MOST_OUTPUT = 256 * 1024  # characters of an answer that a person gives
MOST_AT_ONCE = 200  # decisions of one request


class Answer(NamedTuple):
    """What is decided. `output` belongs to respond, `arguments` (an object, or its text) to edit."""

    decision: str
    message: str = ""
    reason: str = ""
    output: str | None = None
    arguments: dict[str, Any] | str | None = None


class Outcome(NamedTuple):
    """What became of one question of several: `found` as it was decided, or the error."""

    approval: str
    found: Approval | None
    error: SwitchboardError | None


def decide(by: Who, approval: str, decision: str, **more: Any) -> Approval:
    """Decide a tool call; the run is queued again once nothing more is pending. `more` are the fields of `Answer`.

    Raises `Conflict` when somebody was first (code already_decided) or the question is over (cancelled, expired,
    run_over), `NotAllowed` without the right or by four eyes, `NotFound`, `Invalid`.
    """
    answer = Answer(decision, **more)
    with acting(by, "decide", f"approval:{approval}", right="decide") as principal:
        found = settle(principal, approval, answer)
    found.refresh_from_db()
    return found


def decide_each(by: Who, approvals: Collection[str], decision: str, **more: Any) -> list[Outcome]:
    """Decide several, each in a transaction of its own: one that fails takes no other with it."""
    if not 1 <= len(approvals) <= MOST_AT_ONCE:
        raise Invalid(f"expected 1 to {MOST_AT_ONCE}; got {len(approvals):,}", field="approvals")
    if decision not in ("approve", "reject"):
        raise Invalid("expected approve or reject: everything else is about one call", field="decision")
    return [_outcome(by, one, decision, **more) for one in dict.fromkeys(approvals)]


def settle(principal: Principal, approval: str, answer: Answer, **beside: object) -> Approval:
    """Decide inside an action; `beside` goes into the event. Raises as `decide` does."""
    found = Approval.objects.filter(id=approval).first()
    if found is None:
        raise NotFound(f"no approval {approval[:80]}")
    conversation = Conversation.objects.locked(found.conversation_id)
    found.refresh_from_db()
    if found.status != "pending":
        raise _over(found)
    run = _waiting(found)
    _require_other_eyes(principal, found, run)
    replayable.require_second(principal, found, run)
    told = _told(found, answer) | beside
    close(principal, found, conversation.key, run, told)
    facts = {"conversation": conversation.key, "run": run.id, "call": found.tool_call, "decision": answer.decision}
    audit.enter(
        principal, "decide", f"approval:{approval}", reason=answer.reason, correlation=facts,
        after=audit.digest({name: told[name] for name in ("decision", "output", "args_raw") if name in told}),
    )  # fmt: skip
    return found


def close(principal: Principal, found: Approval, key: str, run: Run, told: Body) -> None:
    """Give a question its one decision, with the conversation locked. Raises `Conflict` when it has one."""
    if not Approval.objects.filter(id=found.id, status="pending").update(status="decided"):
        found.refresh_from_db()
        raise _over(found)
    _tell(principal, key, run, told)


def asked_of(found: Approval) -> Body:
    """Read the event that asked."""
    asked = Event.objects.filter(conversation=found.conversation_id, seq=found.asked_seq)
    return read_asked(asked.values_list("body", flat=True).get())


def read_asked(body: str) -> Body:
    """Read the body of an event that asked."""
    told: Body = json.loads(body)
    return told


def wrote_input(principal: Principal, run: Run) -> bool:
    """Tell whether somebody wrote or sent what a run answers, as themselves or as an agent, or had it run again."""
    return str(principal) in authors(run)


def authors(run: Run) -> set[str]:
    """Answer who wrote or sent what a run answers, or had it run again. What a token does is written down by the
    system, with `by`."""
    seqs = (run.input_seq, run.queued_seq)
    behind = Event.objects.filter(conversation=run.conversation_id, seq__in=seqs)
    return {
        str(json.loads(body).get("by") or kept) if kept == "system" else kept
        for kept, body in behind.values_list("principal", "body")
    }


def needs_other_eyes(told: Body) -> bool:
    """Tell whether who wrote a run's input may not decide about this call of it, as the policy stands now."""
    call = always.call_of(told)
    return terms.of_call(policy.about(call.agent, call.tool)).four_eyes


def _outcome(by: Who, approval: str, decision: str, **more: Any) -> Outcome:
    try:
        return Outcome(approval, decide(by, approval, decision, **more), None)
    except SwitchboardError as error:
        return Outcome(approval, None, error)


def _waiting(found: Approval) -> Run:
    run = Run.objects.get(id=found.run)
    if run.status != "waiting":
        raise Conflict(f"the run does not wait any more: it is {run.status}", code="run_over")
    return run


def _require_other_eyes(principal: Principal, found: Approval, run: Run) -> None:
    if wrote_input(principal, run) and needs_other_eyes(asked_of(found)):
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
    read, text = arguments.read(given, str(asked_of(found).get("schema") or ""))
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
    who = f"a rule of {_maker(found.rule)}" if found.rule else found.decided_by
    return Conflict(f"{who} decided already: {found.decision}, at {at}", code="already_decided")


def _maker(rule: str) -> str:
    return AlwaysRule.objects.filter(id=rule).values_list("made_by", flat=True).first() or "somebody"
