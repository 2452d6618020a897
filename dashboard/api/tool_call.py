"""One tool call for programs: `GET /api/v1/tool-calls/{id}`, and `POST …/replays` which makes it again (design 3.6)."""

from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from conversations import envelopes, recorded_call, replayable
from conversations.actions import replays as actions
from conversations.errors import Conflict
from conversations.models import ToolCall
from conversations.recorded_call import Recorded
from conversations.replayable import Today
from dashboard.api import bodies
from dashboard.api.shapes_replays import ToReplay
from dashboard.pages.allowed import takes

Json = dict[str, Any]


@require_safe
@takes("view")
def tool_call(request: HttpRequest, id: str) -> JsonResponse:
    """Answer one call: its identity, arguments, output, error, decision, replays, and what its tool is today."""
    one = recorded_call.find(id)
    return JsonResponse(_item(one) | {"today": _today(one, replayable.of_call(one.row, one.told))})


@require_POST
@takes("replay")
def replays(request: HttpRequest, id: str) -> JsonResponse:
    """Answer what a replay would be (`dry`, which it is unless told otherwise), or begin it: 201 with run and call."""
    asked = bodies.read(request, ToReplay)
    if not asked.dry:
        new = actions.replay(request.user, id, **asked.model_dump(exclude={"dry"}))
        told = {"run_id": new.run, "tool_call": new.call, "url": reverse("call", args=[new.call])}
        return JsonResponse(told, status=201)
    one = recorded_call.find(id)
    today = replayable.of_call(one.row, one.told)
    if today.why_not:
        raise Conflict(today.why_not, code="not_replayable")
    sent, text, is_edited = actions.checked(one.told, asked.arguments, today.schema)
    key = "" if is_edited else replayable.first_of(one.row)
    request_: Json = {
        "tool": today.tool,
        "lookup_key": today.text("lookup_key"),
        "agent": today.agent,
        "team": today.team,
    }
    request_ |= {"schema": today.schema, "arguments": sent, "args_raw": text, "key": key, "edited": is_edited}
    return JsonResponse({"request": request_, "recorded": _item(one), "today": _today(one, today, is_edited=is_edited)})


def _today(one: Recorded, today: Today, *, is_edited: bool = False) -> Json:
    takes_more = bool(today.facts) and not today.is_free(is_edited=is_edited)
    return {
        "can_replay": not today.why_not, "why_not": today.why_not, "team": today.team, "schema": today.schema or None,
        "is_changed": bool(today.schema) and today.schema != one.row.schema, "effect": today.effect, "rule": today.rule,
        "takes": ["grant", "reason", "tool"] if takes_more else [], "second_person": today.needs_second,
        "notes": list(today.notes),
    }  # fmt: skip


def _item(one: Recorded) -> Json:
    row, told, approval = one.row, one.told, one.approval
    at = datetime.fromtimestamp(row.started_at / 1e6, UTC).isoformat()
    decided = {"approval_id": approval.id, "status": approval.status, "decision": approval.decision} if approval else {}
    return {
        "id": row.id, "conversation_id": one.key, "run_id": row.run, "call_id": row.call_id, "nth": row.nth,
        "agent": row.agent, "name": row.name, "namespace": row.namespace, "qualified_name": one.tool,
        "lookup_key": row.lookup_key, "origin": row.origin, "mcp_server": _text(told.get("mcp_server")),
        "schema": row.schema, "arguments": _value(one.arguments), "args_raw": _text(told.get("args_raw")),
        "output": _value(one.output), "error": _value(one.error), "status": row.status, "started_at": at,
        "duration_ms": row.duration_ms, "replay_of": row.replay_of, "parent_call": _text(told.get("parent_call")),
        "called_seq": row.called_seq, "finished_seq": row.finished_seq,
        "approval": decided | {"by": approval.decided_by} if approval else None,
        "replays": [_replay(found) for found in recorded_call.replays(one)], "url": reverse("call", args=[row.id]),
    }  # fmt: skip


def _replay(found: ToolCall) -> Json:
    return {"id": found.id, "run_id": found.run, "status": found.status}


def _value(text: str) -> Any:
    try:
        return envelopes.decoded(text.encode("utf-8", "replace")) if text else None
    except (ValueError, RecursionError):
        return text


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
