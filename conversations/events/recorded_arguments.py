"""What a call was called with and what it ran with, read from the record, and its provider's id. The model's arguments
stand in the event that asked, those that a person changed them to in `approval.decided`."""

import json
from collections.abc import Mapping
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from conversations.core.json_values import text_of
from conversations.events import payload
from conversations.models import Approval, Event, ToolCall


def edited(decided: Mapping[str, Any]) -> str | None:
    """Return the arguments that a person wrote, as JSON text; None for a decision that changed none.

    `decided` is the body of an `approval.decided`.
    """
    text = decided.get("args_raw")
    return text if decided.get("decision") == "edit" and isinstance(text, str) else None


def as_ran(body: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    """Return what an event of a call tells, with the arguments that ran (`text`; None: those that it tells)."""
    return dict(body) if text is None else {**body, "args_raw": text, "args": None}


def arguments_of(body: dict[str, Any]) -> str:
    """Return the arguments that a call was sent with, as text."""
    raw = body.get("args_raw")
    return raw if isinstance(raw, str) else json.dumps(body.get("args") or {}, ensure_ascii=False)


def value_of(text: str) -> Any:  # any JSON
    """Return the value of a stored JSON text: None for the empty text that a redaction leaves; else, if it is not JSON,
    the text itself."""
    try:
        return payload.decoded(text.encode("utf-8", "replace")) if text else None
    except (ValueError, RecursionError):
        return text


def arguments_changed(approvals: QuerySet[Approval]) -> dict[str, tuple[str, str]]:
    """Return what was asked and what ran, as JSON texts, of those whose arguments a person changed, by their ids."""
    changed: dict[str, tuple[str, str]] = {}
    for row in approvals.filter(status="decided", decision="edit"):
        text = edited(body_of(row.conversation_id, row.decided_seq or 0))
        if text is not None:
            changed[row.id] = arguments_of(body_of(row.conversation_id, row.asked_seq)), text
    return changed


def messages_of(approvals: QuerySet[Approval]) -> dict[str, str]:
    """Return what decisions said to the agent, by the ids of the requests. One query for all."""
    decided = Event.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("decided_seq")).values("body")
    rows = approvals.filter(status="decided").annotate(body=Subquery(decided[:1])).values_list("id", "body")
    messages = {id_: json.loads(body).get("message") for id_, body in rows if body}
    return {id_: message for id_, message in messages.items() if isinstance(message, str) and message}


def call_id_of(call: ToolCall) -> str | None:
    """Return a call's id as the provider gave it, by which its output is sent to the model: in the tables a long one is
    shortened (`payload.short_call_id`)."""
    if call.call_id is None or len(call.call_id) < payload.MAX_CALL_ID:
        return call.call_id
    return text_of(body_of(call.conversation_id, call.called_seq).get("tool_call_id")) or call.call_id


def body_of(conversation: int, seq: int) -> dict[str, Any]:
    """Return what an event says; nothing of one that is not there, or says no object."""
    text = Event.objects.filter(conversation=conversation, seq=seq).values_list("body", flat=True).first()
    body: Any = payload.decoded(text) if text else {}
    return body if isinstance(body, dict) else {}
