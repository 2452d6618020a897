"""Approval requests of external agents: created with an agent's token, decided once like any other, and withdrawn when
nobody waits for the decision anymore (laws E, I).

The call is one that the record observes. A run of kind `external` represents the waiting agent: it is never claimed,
and ends with the decision, or as cancelled if the request is withdrawn. Waiting clients renew its lease; without a
lease a request can no longer be decided. Called by the raw endpoints that such agents use, and periodically by the
server.
"""

import json
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from conversations.core.database_clock import database_now
from conversations.core.errors import Conflict
from conversations.core.ids import new_id, text_digest
from conversations.core.principals import SYSTEM, Principal
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.events.log import token_check
from conversations.events.log.records import NewEvent
from conversations.events.recorded_arguments import body_of, edited
from conversations.events.redacted_events import has_redacted
from conversations.models import Approval, Conversation, Event, Run, ToolCall, ToolSchema
from conversations.models.run import EXTERNAL
from conversations.runs.act_on_each import act_on_each
from conversations.runs.approvals import request_terms
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Declared

LEASE_S = 20.0  # whoever waits may be silent as long
MAX_PROPERTIES = 64  # arguments that a form is made of

Body = dict[str, Any]  # JSON


class ExternalRequest(NamedTuple):
    """An external agent's request: the call as it describes it (`call_id` None: without id), the decisions that it
    accepts, and the reason."""

    conversation: str
    agent: str
    name: str
    call_id: str | None
    arguments: object
    args_raw: str
    origin: str
    decisions: Collection[str]
    why: str


class ExternalOutcome(NamedTuple):
    """The outcome of a request: `approve`, `edit` (with the arguments), `reject` or `respond` (with the output); an
    empty decision if it can no longer be decided."""

    decision: str
    message: str = ""
    arguments: object = None
    output: str = ""


def request_approval(by: Principal, approval_request: ExternalRequest, beginning: NewEvent) -> Approval | None:
    """Request approval of an open call in a conversation that `by` opened; return the request, always the same one for
    the same call. If the call is not recorded yet, `beginning` is appended first. None: the conversation belongs to
    somebody else, or the call was asked about with other arguments and does not begin again. Raises NotSignedIn for a
    token that has been revoked."""
    with write_transaction():
        if not Conversation.objects.filter(key=approval_request.conversation).exists():
            log.append([beginning])
        conversation = _own(by, approval_request.conversation)
        if conversation is None:
            return None
        token_check.require_good_tokens([beginning])
        call = _call(conversation, approval_request) or _rejected_call(conversation, approval_request)
        if call is None:
            log.append([beginning])
            call = _call(conversation, approval_request)
        if call is None:
            return None
        known = Approval.objects.filter(tool_call=call.id).first()
        return known if known is not None else _create_request(by, conversation, call, approval_request)


def opener_of(conversation: str) -> str:
    """Return the principal that opened a conversation; empty while it does not exist."""
    return Conversation.objects.filter(key=conversation).values_list("opened_by", flat=True).first() or ""


def renew(approval: Approval) -> None:
    """Renew the lease of a request."""
    with write_transaction():
        Run.objects.filter(id=approval.run, status="waiting").update(lease_until=_lease())


def outcome(approval: Approval) -> ExternalOutcome | None:
    """Return the outcome of a request; None while it waits. A call that the policy now denies is rejected; a decision
    whose arguments or output were redacted no longer counts."""
    row = Approval.objects.filter(id=approval.id).first()
    if row is not None and row.status == "pending":
        return None
    if row is None or row.status == "cancelled":
        return ExternalOutcome("")
    if row.status == "expired":
        return ExternalOutcome("reject", "Nobody decided in time.")
    decided = body_of(row.conversation_id, row.decided_seq or 0)
    if row.decision in ("edit", "respond") and has_redacted(
        Event.objects.filter(conversation=row.conversation_id, seq=row.decided_seq or 0)
    ):
        return ExternalOutcome("")
    request = body_of(row.conversation_id, row.asked_seq)
    if row.decision in ("approve", "edit") and _is_denied(str(request.get("agent")), str(request.get("name"))):
        return ExternalOutcome("reject", "Denied by policy.")
    text = edited(decided)
    arguments = json.loads(text) if text is not None else None
    return ExternalOutcome(
        row.decision or "", str(decided.get("message") or ""), arguments, str(decided.get("output") or "")
    )


def withdraw(approvals: Iterable[str], reason: str) -> list[str]:
    """Withdraw those of these requests that are not decided; return their ids."""
    return [approval for approval in approvals if _withdraw(approval, reason)]


def open_requests(by: Principal, conversation: str, *, call_id: str | None = None) -> list[str]:
    """Return the open requests of `by` in a conversation; with `call_id` only those for that call."""
    here = _external().filter(conversation__key=conversation, conversation__opened_by=str(by))
    if call_id is not None:
        here = here.filter(tool_call__in=ToolCall.objects.filter(call_id=call_id).values("id"))
    return list(here.values_list("id", flat=True))


def withdraw_abandoned() -> list[str]:
    """Withdraw the requests whose clients no longer wait; return their ids."""
    left = _external().filter(run__in=Run.objects.filter(_without_lease()).values("id"))
    why = "nobody waits for this decision anymore"

    def withdraw_one(approval: Approval) -> bool:
        return _withdraw(approval.id, why, only_abandoned=True)

    return [approval.id for approval in act_on_each(left[:100], withdraw_one)]


def require_external_lease(run: Run) -> None:
    """Raise `Conflict` for a request of an external agent whose client no longer waits."""
    if run.kind == EXTERNAL and (run.lease_until or 0) < database_now():
        raise Conflict(f"the agent {run.agent} is no longer waiting for this decision", code="run_over")


def _without_lease() -> Q:
    """Return the condition that the client of a run no longer waits."""
    return Q(lease_until__lt=database_now()) | Q(lease_until=None)


def _external() -> QuerySet[Approval]:
    waiting = Run.objects.filter(kind=EXTERNAL, status="waiting").values("id")
    return Approval.objects.filter(status="pending", run__in=waiting)


def _own(by: Principal, key: str) -> Conversation | None:
    if not Conversation.objects.filter(key=key, opened_by=str(by)).exists():
        return None
    return Conversation.objects.locked(key=key)


def _call(conversation: Conversation, approval_request: ExternalRequest) -> ToolCall | None:
    """Return the open call to be approved: by its id, or else by tool and arguments; the one that was asked about with
    these arguments, or else the oldest without a request, of which those with these arguments come first.

    Two open calls may have one id: some model servers number calls from the start in each answer. What was decided
    about other arguments holds for none of them.
    """
    calls = ToolCall.objects.filter(
        conversation=conversation, run=None, finished_seq=None, name=approval_request.name[:200]
    )
    digest = text_digest(approval_request.args_raw)
    if approval_request.call_id is not None:
        calls = calls.filter(call_id=approval_request.call_id)
    else:
        calls = calls.filter(arguments_digest=digest)
    rows = list(calls.order_by("called_seq"))
    known = {row.tool_call: row for row in Approval.objects.filter(tool_call__in=[row.id for row in rows])}
    free = [row for row in rows if row.id not in known]
    if approval_request.call_id is None:
        return next(iter(free), rows[-1] if rows else None)
    same = (row for row in reversed(rows) if row.id in known and _is_about(known[row.id], approval_request))
    newest = next(same, None)  # each is a query: the newest first
    return newest or min(free, key=lambda row: row.arguments_digest != digest, default=None)


def _rejected_call(conversation: Conversation, approval_request: ExternalRequest) -> ToolCall | None:
    """Return the call that a rejection ended, if the same approval is requested again: the response was lost, or it was
    decided between two requests. None if a further call with that id has started since, or has other arguments."""
    if approval_request.call_id is None:
        return None
    same = ToolCall.objects.filter(conversation=conversation, run=None, call_id=approval_request.call_id)
    last = same.order_by("-called_seq").first()
    if last is None:
        return None
    known = Approval.objects.filter(tool_call=last.id, decision="reject", decided_seq=last.finished_seq).first()
    return last if known is not None and _is_about(known, approval_request) else None


def _is_about(approval: Approval, approval_request: ExternalRequest) -> bool:
    """Return whether approval was requested of this tool with these arguments."""
    request = body_of(approval.conversation_id, approval.asked_seq)
    return (request.get("name"), request.get("args_raw")) == (approval_request.name, approval_request.args_raw)


def _create_request(
    by: Principal, conversation: Conversation, call: ToolCall, approval_request: ExternalRequest
) -> Approval:
    run, approval = new_id(), new_id()
    mine: Body = {"run_id": run, "agent": approval_request.agent}
    about = evaluate.about(approval_request.agent, approval_request.name)
    request: Body = {
        "event": "approval.requested",
        "approval_id": approval,
        "tool_call": call.id,
        "name": approval_request.name,
        "tool_call_id": call.call_id,
        "origin": approval_request.origin,
        "qualified_name": approval_request.name,
        "args_raw": approval_request.args_raw,
        "digest": call.arguments_digest,
        "effect": "unsafe",
        "why": approval_request.why,
        "decisions": list(approval_request.decisions),
        **request_terms.of_call(about).request_fields(),
    }
    if isinstance(approval_request.arguments, dict):
        request |= {
            "args": approval_request.arguments,
            "schema": _schema(approval_request.name, approval_request.arguments),
        }
    bodies: list[Body] = [
        {"event": "run.queued", "run_kind": EXTERNAL, "input_seq": call.called_seq, "by": str(by)},
        {name: value for name, value in request.items() if value is not None},
        {"event": "run.waiting", "reason": "approval"},
    ]
    log.append([_event(conversation.key, {"id": new_id(), **mine, **body}) for body in bodies])
    Run.objects.filter(id=run).update(lease_until=_lease())
    return Approval.objects.get(id=approval)


def _withdraw(approval: str, reason: str, *, only_abandoned: bool = False) -> bool:
    with write_transaction():
        row = Approval.objects.filter(id=approval).first()
        if row is None:
            return False
        conversation = Conversation.objects.locked(row.conversation_id)
        # `renew` does not lock the conversation: the update makes it wait, or finds the lease renewed.
        run_left = Run.objects.filter(_without_lease(), id=row.run) if only_abandoned else None
        if run_left is not None and not run_left.update(lease_until=None):
            return False
        if not Approval.objects.filter(id=approval, status="pending").update(status="cancelled"):
            return False
        run = Run.objects.get(id=row.run)
        fields: Body = {"run_id": run.id, "agent": run.agent}
        about: Body = {"approval_id": row.id, "tool_call": row.tool_call, "reason": reason}
        over: Body = {"event": "run.cancelled", "run_kind": EXTERNAL, "reason": reason}
        bodies: list[Body] = [{"event": "approval.cancelled", **about}, over]
        log.append([_event(conversation.key, {"id": new_id(), **fields, **body}) for body in bodies])
    return True


def _event(key: str, body: Body) -> NewEvent:
    return log.from_internal(key, body, SYSTEM)._replace(starts_no_run=True)


def _lease() -> int:
    return database_now() + int(LEASE_S * 1e6)


def _is_denied(agent: str, tool: str) -> bool:
    return evaluate.for_tool(agent, tool, Declared("ask", "unsafe")).rule == "deny"


_JSON_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _schema(name: str, arguments: Body) -> str:
    """Store a schema derived from the arguments, so that a form can be built for them; return its hash."""
    properties = {
        key: {"type": kind} for key, value in list(arguments.items())[:MAX_PROPERTIES]
        if (kind := _JSON_TYPES.get(type(value)))
    }  # fmt: skip
    parameters = {"type": "object", "properties": properties}
    stored = {"name": name[:200], "params_json_schema": parameters}
    body = json.dumps(stored, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    hash_ = text_digest(body)
    ToolSchema.objects.get_or_create(hash=hash_, defaults={"name": name[:200], "body": body})
    return hash_
