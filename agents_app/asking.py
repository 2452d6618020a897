"""Calls that wait for a person: what is asked when a run stops for them, and what was decided when it goes on."""

import json
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool, RunState, ToolApprovalItem

from agents_app import gate, identity
from agents_app.calls import ASKED, Calls
from agents_app.decided import Decided
from agents_app.hooks import arguments, digest
from agents_app.pen import mask
from agents_app.responding.tools import is_external
from agents_app.roster import Roster
from agents_app.sealing import Incompatible, tool_of
from conversations import policy
from conversations.actions.runs import Body
from conversations.ids import new_id
from conversations.models import Approval, Event
from conversations.policy import Declared, Row, Rows
from conversations.terms import of_call

EXPIRED = "Nobody decided in time, so the call was not made. Go on without it."


def requests(asked: Sequence[ToolApprovalItem], calls: Calls, roster: Roster, turn: int, rules: Rows) -> list[Body]:
    """Answer an `approval.requested` for each call that has not been asked about yet."""
    told: list[Body] = []
    known: set[str] = set()
    for item in asked:
        call_id, sent = item.call_id or "", item.arguments or ""
        if ours := calls.decided(call_id, digest(mask(sent)), besides=known):
            known.add(ours)
            continue
        tool, ours = tool_of(item), calls.new(call_id)
        facts = question(item.agent.name, turn, ours, item.call_id, sent, parent=calls.lane(call_id, sent))
        facts |= {"name": item.name} | (of_tool(tool, item.tool_namespace, item.agent.name, roster) if tool else {})
        about = policy.matching(rules, item.agent.name, item.qualified_name or item.name or "")
        told.append(facts | {"why": why(item.qualified_name or item.name or "", tool, about)} | of_call(about).told())
    return told


def question(agent: str, turn: int, ours: str, call_id: str | None, sent: str, *, parent: str | None) -> Body:
    """Make an `approval.requested`, apart from what the tool tells; `sent` are the arguments as the model sent them."""
    told: Body = {"event": "approval.requested", "approval_id": new_id(), "tool_call": ours, "agent": agent}
    told |= {"turn": turn, "tool_call_id": call_id, **arguments(mask(sent)), "digest": digest(sent)}
    return told | ({"parent_call": parent} if parent else {})


def of_tool(tool: FunctionTool, called_as: str | None, agent: str, roster: Roster) -> Body:
    """Answer what a question tells of its tool."""
    return identity.layers(tool, called_as) | {"effect": roster.effect(tool, agent)}


def why(name: str, tool: FunctionTool | None, about: list[Row]) -> str:
    """Say who wants a call to wait: the operators' policy, or the tool's code."""
    guarded = gate.gate_of(tool)
    declared = Declared("ask" if guarded is not None and guarded.code is True else "allow")
    row = policy.effective(declared, about).by
    return gate.why(row) if row is not None and row.rule == "ask" else f"{name} needs a person's approval"


def decisions(run: str) -> dict[str, Decided]:
    """Answer what was decided about a run's calls, by our ids. Sync."""
    found: dict[str, Decided] = {}
    for row in Approval.objects.filter(run=run, status="expired"):
        found[row.tool_call] = Decided("reject", EXPIRED)
    for row in Approval.objects.filter(run=run, status="decided"):
        both = Event.objects.filter(conversation=row.conversation_id, seq__in=(row.asked_seq, row.decided_seq or 0))
        asked, told = (json.loads(body) for body in both.order_by("seq").values_list("body", flat=True))
        found[row.tool_call] = Decided(
            row.decision or "",
            told.get("message") or "",
            digest=told.get("digest") or asked.get("digest") or "",
            arguments=told.get("args_raw"),
            output=told.get("output") or "",
            by=row.decided_by or "",
            server=asked.get("mcp_server") or "",
        )
    return found


def apply(state: RunState[Any, Any], calls: Calls, decided: dict[str, Decided]) -> None:
    """Tell the SDK's state what was decided. Raises Incompatible when a call in it was never asked about."""
    known: set[str] = set()
    for item in state.get_interruptions():
        if is_external(item):
            continue  # its client's to answer, and nobody's here to decide
        sent = digest(mask(item.arguments or ""))
        ours = calls.decided(item.call_id or "", sent, besides=known, asked=(*ASKED, "blocked"))  # its time was up
        known.add(ours or "")
        found = decided.get(ours or "")
        if found is None:
            raise Incompatible(f"nothing was decided about {item.qualified_name or item.name}")
        if found.decision == "reject":
            state.reject(item, rejection_message=found.message or None)
        else:
            state.approve(item)
