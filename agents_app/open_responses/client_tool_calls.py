"""Calls of a client's own tools in the record: stored when made, closed when their outputs come back. Synchronous."""

from collections.abc import Iterable, Sequence

from agents import ToolApprovalItem
from django.db.models import QuerySet

from agents_app.open_responses.history import ChainLink
from agents_app.open_responses.request import Item, RunRequest
from agents_app.recorded_values import mask_json_text, to_json_value
from agents_app.tools import identity
from agents_app.worker.call_ids import CallIdMap
from agents_app.worker.run_hooks import arguments
from agents_app.worker.saved_state import tool_of
from conversations.core.database_clock import database_now
from conversations.core.errors import Fenced
from conversations.core.ids import new_id
from conversations.events import log, payload
from conversations.events.response_ids import CLIENT_ORIGIN
from conversations.models import Conversation, Run, ToolCall
from conversations.runs.claims import Body, Claim


def called_bodies(items: Iterable[ToolApprovalItem], calls: CallIdMap, turn: int) -> list[Body]:
    """Return a started call for each: it stays open, although the run is over, until its output comes back."""
    bodies: list[Body] = []
    for item in items:
        sent = mask_json_text(item.arguments or "")
        body: Body = {"event": "tool_step", "agent": item.agent.name, "turn": turn, "tool_call_id": item.call_id}
        body |= {"tool_call": calls.new(item.call_id or ""), "name": item.name} | arguments(sent)
        if (tool := tool_of(item)) is not None:
            body |= identity.layers(tool)
        bodies.append(body | {"origin": CLIENT_ORIGIN})
    return bodies


def close(claim: Claim, request: RunRequest, chain: Sequence[ChainLink]) -> None:
    """Close the open calls of a chain for which a request has outputs, each where it was made. Raises Fenced.

    An output for no call of ours (from the client's own history) closes none.
    """
    outputs = [item for item in request.items if item.get("type") == "function_call_output"]
    if not outputs or not (runs := [link.run for link in chain]):
        return
    if not _open(runs, outputs).exists():
        return
    with log.write_transaction():
        places = Conversation.objects.filter(id__in=_open(runs, outputs).values("conversation"))
        for conversation_id in [*places.order_by("id").values_list("id", flat=True)]:
            Conversation.objects.locked(conversation_id)
        if not Run.objects.mine(claim.run, claim.attempt).exists():
            raise Fenced(f"run {claim.run} is no longer running in attempt {claim.attempt}")
        waiting = list(_open(runs, outputs).select_related("conversation").order_by("called_seq"))
        events = []
        for item in outputs:
            call = next((open_call for open_call in waiting if open_call.call_id == _call_id(item)), None)
            if call is not None:
                waiting.remove(call)
                body = _ended(claim, request, call, item)
                events.append(log.from_internal(call.conversation.key, body, claim.principal))
        log.append(events)


def _open(runs: Sequence[str], outputs: Sequence[Item]) -> QuerySet[ToolCall]:
    ids = {_call_id(item) for item in outputs}
    return ToolCall.objects.filter(run__in=runs, origin=CLIENT_ORIGIN, status="called", call_id__in=ids)


def _call_id(item: Item) -> str:
    return payload.short_call_id(str(item.get("call_id")))


def _ended(claim: Claim, request: RunRequest, call: ToolCall, item: Item) -> Body:
    output, size = to_json_value(item.get("output"))
    body: Body = {"event": "tool_step", "id": new_id(), "run_id": call.run, "agent": claim.agent, "name": call.name}
    body |= {"tool_call": call.id, "tool_call_id": call.call_id, "status": "success", "output": output}
    body |= {"output_bytes": size, "duration_ms": round((database_now() - call.started_at) / 1000, 3)}
    return body | {"answered_by": request.by, "response_id": request.response_id}
