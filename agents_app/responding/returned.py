"""Calls of a client's tools in the record: told when they are made, closed when their outputs come back. Sync."""

from collections.abc import Iterable, Sequence

from agents import ToolApprovalItem

from agents_app import identity
from agents_app.calls import Calls
from agents_app.hooks import arguments
from agents_app.pen import mask, plain
from agents_app.responding.asked import Asked, Item
from agents_app.responding.chain import Link
from agents_app.sealing import tool_of
from conversations import log
from conversations.actions.runs import Body, Claim
from conversations.errors import Fenced
from conversations.ids import new_id
from conversations.models import Conversation, Run, ToolCall
from conversations.nodes import database_time
from conversations.responses import EXTERNAL


def told(asked: Iterable[ToolApprovalItem], calls: Calls, turn: int) -> list[Body]:
    """Answer a call without an end for each: it stays open, with the run over, until its output comes back."""
    made: list[Body] = []
    for item in asked:
        sent = mask(item.arguments or "")
        facts: Body = {"event": "tool_step", "agent": item.agent.name, "turn": turn, "tool_call_id": item.call_id}
        facts |= {"tool_call": calls.new(item.call_id or ""), "name": item.name} | arguments(sent)
        if (tool := tool_of(item)) is not None:
            facts |= identity.layers(tool)
        made.append(facts | {"origin": EXTERNAL})
    return made


def close(claim: Claim, asked: Asked, chain: Sequence[Link]) -> None:
    """Close the open calls of a chain that a request has outputs of, each where it was made. Raises Fenced.

    An output that answers no call of ours (the client's own history) closes none.
    """
    outputs = [item for item in asked.items if item.get("type") == "function_call_output"]
    if not outputs or not (runs := [link.run for link in chain]):
        return
    if not _open(runs, outputs).exists():
        return
    with log.writing():
        places = Conversation.objects.filter(id__in=_open(runs, outputs).values("conversation"))
        for place in [*places.order_by("id").values_list("id", flat=True)]:
            Conversation.objects.locked(place)
        if not Run.objects.mine(claim.run, claim.attempt).exists():
            raise Fenced(f"run {claim.run} is not running in attempt {claim.attempt} any more")
        waiting = list(_open(runs, outputs).select_related("conversation").order_by("called_seq"))
        events = []
        for item in outputs:
            call = next((one for one in waiting if one.call_id == item.get("call_id")), None)
            if call is not None:
                waiting.remove(call)
                payload = _ended(claim, asked, call, item)
                events.append(log.of_ours(call.conversation.key, payload, claim.principal))
        log.append(events)


def _open(runs: Sequence[str], outputs: Sequence[Item]):  # type: ignore[no-untyped-def]  # a queryset of ToolCall
    ids = {str(item.get("call_id")) for item in outputs}
    return ToolCall.objects.filter(run__in=runs, origin=EXTERNAL, status="called", call_id__in=ids)


def _ended(claim: Claim, asked: Asked, call: ToolCall, item: Item) -> Body:
    output, size = plain(item.get("output"))
    facts: Body = {"event": "tool_step", "id": new_id(), "run_id": call.run, "agent": claim.agent, "name": call.name}
    facts |= {"tool_call": call.id, "tool_call_id": call.call_id, "status": "success", "output": output}
    facts |= {"output_bytes": size, "duration_ms": round((database_time() - call.started_at) / 1000, 3)}
    return facts | {"answered_by": asked.by, "response_id": asked.response_id}
