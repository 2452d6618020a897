"""One tool call for programs: `GET /api/v1/tool-calls/{id}`, and `POST …/replays`, which replays it (§3.6)."""

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.urls import reverse

from conversations.core.errors import Conflict
from conversations.core.json_values import text_of
from conversations.core.micros import to_datetime
from conversations.events.recorded_arguments import value_of
from conversations.models import ToolCall
from conversations.runs.replay import request_replay
from conversations.runs.replay.eligibility import ReplayEligibility, eligibility_of, idempotency_key
from conversations.tool_calls import call_record
from conversations.tool_calls.call_record import CallRecord
from dashboard.api.openapi.operations import Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas.replays import DryReplay, OneCall, ReplayBegun, ToReplay
from dashboard.require_permission import require_permission

Json = dict[str, Any]


@endpoint(get=Operation("Read one tool call.", {200: OneCall}))
@require_permission("view")
def tool_call(request: HttpRequest, id: str) -> JsonResponse:
    """Return one call: its identity, arguments, output, error, decision, replays, and the current state of its tool."""
    call = call_record.find(id)
    return JsonResponse(_item(call) | {"today": _today(call, eligibility_of(call.row, call.called_body))})


@endpoint(
    post=Operation(
        "Show what a replay of a call would send, or start it with `dry` false.",
        {200: DryReplay, 201: ReplayBegun},
        body=ToReplay,
        errors=(409,),
    )
)
@require_permission("replay")
def replays(request: HttpRequest, id: str) -> JsonResponse:
    """Return what a replay would do (`dry`, the default), or start it: 201 with the run and the call."""
    body = read_body(request, ToReplay)
    if not body.dry:
        new = request_replay.request_replay(request.user, id, **body.model_dump(exclude={"dry"}))
        created = {"run_id": new.run, "tool_call": new.call, "url": reverse("call", args=[new.call])}
        return JsonResponse(created, status=201)
    call = call_record.find(id)
    eligibility = eligibility_of(call.row, call.called_body)
    if eligibility.why_not:
        raise Conflict(eligibility.why_not, code="not_replayable")
    sent, text, is_edited = request_replay.read_arguments(call.as_ran, body.arguments, eligibility)
    key = "" if is_edited else idempotency_key(call.row)
    request_: Json = {
        "tool": eligibility.tool,
        "lookup_key": eligibility.text("lookup_key"),
        "agent": eligibility.agent,
        "team": eligibility.team,
    }
    request_ |= {"schema": eligibility.schema, "arguments": sent, "args_raw": text, "key": key, "edited": is_edited}
    return JsonResponse(
        {"request": request_, "recorded": _item(call), "today": _today(call, eligibility, is_edited=is_edited)}
    )


def _today(old: CallRecord, eligibility: ReplayEligibility, *, is_edited: bool = False) -> Json:
    takes_more = bool(eligibility.facts) and not eligibility.is_one_click(is_edited=is_edited)
    return {
        "can_replay": not eligibility.why_not, "why_not": eligibility.why_not, "team": eligibility.team,
        "schema": eligibility.schema or None,
        "is_changed": bool(eligibility.schema) and eligibility.schema != old.row.schema,
        "effect": eligibility.effect, "rule": eligibility.rule,
        "takes": ["grant", "reason", "tool"] if takes_more else [], "second_person": eligibility.needs_second,
        "notes": list(eligibility.notes),
    }  # fmt: skip


def _item(call: CallRecord) -> Json:
    row, fields, approval = call.row, call.called_body, call.approval
    at = to_datetime(call.began_at).isoformat()
    imported_at = to_datetime(row.started_at).isoformat() if call.is_imported else None
    decided = {"approval_id": approval.id, "status": approval.status, "decision": approval.decision} if approval else {}
    return {
        "id": row.id, "conversation_id": call.conversation_key, "run_id": row.run, "call_id": row.call_id,
        "nth": row.nth, "agent": row.agent, "name": row.name, "namespace": row.namespace, "qualified_name": call.tool,
        "lookup_key": row.lookup_key, "origin": row.origin, "mcp_server": text_of(fields.get("mcp_server")),
        "schema": row.schema, "arguments": value_of(call.arguments), "args_raw": text_of(fields.get("args_raw")),
        "ran_with": value_of(call.ran), "changed_by": _changed_by(call),
        "output": value_of(call.output), "error": value_of(call.error), "status": row.status, "started_at": at,
        "imported_at": imported_at, "duration_ms": row.duration_ms,
        "replay_of": row.replay_of, "parent_call": text_of(fields.get("parent_call")),
        "called_seq": row.called_seq, "finished_seq": row.finished_seq,
        "approval": decided | {"by": approval.decided_by} if approval else None,
        "replays": [_replay(replay) for replay in call_record.replays(call)], "url": reverse("call", args=[row.id]),
    }  # fmt: skip


def _changed_by(call: CallRecord) -> str | None:
    return call.approval.decided_by if call.approval and call.edited is not None else None


def _replay(replay: ToolCall) -> Json:
    return {"id": replay.id, "run_id": replay.run, "status": replay.status}
