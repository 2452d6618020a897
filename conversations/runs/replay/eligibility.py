"""Determine whether a recorded call could run today: its current tool, found by registered identity, or the reason why
not; and who else must approve it. Only reads rows. Called by the pages of a call, the API, `request_replay` and
`decide`; the worker's `replay_run` finds a tool by `identity_in`.

A tool is identified by the agent that called it and its team, the lookup key, the origin and the MCP server, never by
its name alone: a tool that took over another's name is a different tool.
"""

from dataclasses import dataclass, field
from typing import Any

from conversations.access import four_eyes
from conversations.core.database_clock import database_now
from conversations.core.errors import NotAllowed
from conversations.core.json_values import text_of
from conversations.core.principals import Principal
from conversations.events.recorded_arguments import body_of
from conversations.events.redacted_events import has_redacted
from conversations.models import Agent, Approval, Event, Run, ToolCall
from conversations.runs.policy import evaluate
from conversations.runs.policy.evaluate import Declared, Effect, PolicyRule, Rule
from conversations.tool_calls.schemas.tool_offers import Facts, entries

_IDENTITY_FIELDS = ("lookup_key", "origin", "mcp_server")  # what makes two tools of an agent the same one
ONE_CLICK_EFFECTS: tuple[Effect, ...] = ("read",)  # done on one click, with whatever arguments
KEYED: Effect = "idempotent"  # done on one click under the first call's key, with the recorded arguments


@dataclass(frozen=True, slots=True)
class ReplayEligibility:
    """A call's tool as it is offered now. `facts` is empty if there is none; `why_not` is empty if it can run."""

    agent: str
    team: str = ""
    facts: Facts = field(default_factory=dict)
    why_not: str = ""
    effect: Effect = "unsafe"
    rule: Rule = "allow"
    by: PolicyRule | None = None
    effect_by: PolicyRule | None = None
    notes: tuple[str, ...] = ()

    @property
    def tool(self) -> str:
        """Its qualified name: the text to type for an unsafe replay, and the target of a grant."""
        return self.text("name")

    @property
    def schema(self) -> str:
        """The hash of the schema that arguments must match."""
        return self.text("schema")

    def text(self, name: str) -> str:
        """Return a fact that is a string, or else an empty text."""
        return text_of(self.facts.get(name)) or ""

    def is_one_click(self, *, is_edited: bool) -> bool:
        """Return whether one click is enough, because the call changes nothing, or nothing more than the first one
        did."""
        return self.effect in ONE_CLICK_EFFECTS or (self.effect == KEYED and not is_edited)

    @property
    def needs_second(self) -> bool:
        """Return whether a second person has to decide: for a destructive call, if the policy or the code requires
        approval."""
        return self.effect == "destructive" and self.rule == "ask"


def eligibility_of(call: ToolCall, body: dict[str, Any], *, rows: evaluate.Rows | None = None) -> ReplayEligibility:
    """Return the current state of a call's tool; `body` is the body of the event that called it. Sync.

    `rows` are the operators' rules, if those of the current transaction are to be used.
    """
    if why := _permanent_reason(call, body):
        return ReplayEligibility(call.agent, why_not=why)
    result = _offered(call, body)
    if isinstance(result, str):
        return ReplayEligibility(call.agent, why_not=result)
    row, tool = result
    rules = evaluate.rows() if rows is None else rows
    declared = Declared(_rule(tool), evaluate.as_effect(tool.get("effect")))
    held = evaluate.effective(declared, evaluate.matching(rules, call.agent, str(tool.get("name") or "")))
    return ReplayEligibility(
        call.agent, row.team, tool, _current_reason(row, tool, held), held.effect, held.rule, held.by, held.effect_by,
        tuple(_notes(call, tool)),
    )  # fmt: skip


def identity_in(body: dict[str, Any]) -> dict[str, str]:
    """Return the tool's registered identity as the body of a call's event has it; empty texts if it has none."""
    return {name: text_of(body.get(name)) or "" for name in _IDENTITY_FIELDS}


def _permanent_reason(call: ToolCall, body: dict[str, Any]) -> str:
    """Return why calls of this kind can never be replayed here."""
    if call.run is None:
        return "Its agent runs elsewhere, so this server cannot make the call."
    if call.origin == "external":
        return "This tool runs on the client that requested the response, not on this server."
    if call.origin == "hosted":
        return "It only runs within a response that requests it: send that request again."
    if not call.lookup_key:
        return "The record does not identify the tool reliably: a name alone is not enough."
    edits = Approval.objects.filter(tool_call=call.id, decision="edit").values_list("decided_seq", flat=True)
    if has_redacted(Event.objects.filter(conversation=call.conversation_id, seq__in=[call.called_seq, *edits])):
        return "Its arguments were redacted."
    return ""


def _offered(call: ToolCall, body: dict[str, Any]) -> tuple[Agent, Facts] | str:
    """Find the tool among those offered to its agent in the team that made the call; otherwise return why there is
    none."""
    agents = list(Agent.objects.filter(name=call.agent).order_by("-served_until", "-is_entry", "team"))
    team = (
        Run.objects.filter(id=call.run).values_list("team", flat=True).first()
    )  # empty if the run is older than teams
    own = [row for row in agents if not team or row.team == team]
    if not own:
        return _agent_missing(call, body, team if agents else None)
    if len(teams := sorted({row.team for row in own})) > 1:
        return f"The record does not say which of the teams {' and '.join(teams)} made it."
    identity, others = identity_in(body), list[Facts]()
    for row in own:
        for tool in entries(row.tools):
            if identity_in(tool) == identity:
                return row, tool
            others.append(tool)
    return _missing(call, identity, others)


def _agent_missing(call: ToolCall, body: dict[str, Any], team: str | None) -> str:
    if body.get("parent_call"):
        return f"{call.agent} only runs inside another call: replay that call to run it again."
    if team:
        return f"Team {team} no longer has {call.agent}, and another team’s agent of that name is a different one."
    return f"No team here has the agent {call.agent} anymore."


def _missing(call: ToolCall, identity: dict[str, str], others: list[Facts]) -> str:
    if any(tool.get("lookup_key") == identity["lookup_key"] for tool in others):
        return f"{call.agent} now has a different tool with this name, from another origin."
    if identity["mcp_server"]:
        return f"{call.agent} cannot use it now: MCP server {identity['mcp_server']} is disconnected or dropped it."
    if any(tool.get("public_name") == call.name for tool in others):
        return (
            f"{call.agent} only has a tool with the same public name in another namespace, which is a different tool."
        )
    return f"{call.agent} no longer has this tool: it was removed or renamed."


def _current_reason(row: Agent, tool: Facts, held: evaluate.Effective) -> str:
    if row.served_until <= database_now():
        return f"{row.name} is not available now: no worker runs it."
    if "approval_keys" in tool and "enabled" not in tool:
        return "It runs at the model's provider, not here."
    if tool.get("enabled") == "never":
        return "The tool is disabled (is_enabled)."
    if held.rule == "deny" and held.by is not None:
        note = f": {held.by.note}" if held.by.note else ""
        return f"Policy denies it (set by {held.by.updated_by}){note}."
    return ""


def _notes(call: ToolCall, tool: Facts) -> list[str]:
    """Return the further conditions of a replay today."""
    notes: list[str] = []
    if call.schema and tool.get("schema") != call.schema:
        notes.append("Its schema has changed since then: the arguments must match today’s schema.")
    if inside := tool.get("agent_inside"):
        notes.append(f"It starts a nested run: {inside} works again and calls its model.")
    if server := tool.get("mcp_server"):
        notes.append(f"The call goes to the MCP server {server} over its worker’s connection.")
    if tool.get("is_deferred") is True:
        notes.append("A model has to search for this tool first; a replay does not.")
    if (enabled := tool.get("enabled")) not in (None, "always"):
        notes.append(f"{enabled} decides at call time whether the tool is enabled.")
    if (asks := tool.get("approval")) not in (None, "always", "never"):
        notes.append(f"{asks} decides whether approval is needed.")
    return notes


def _rule(tool: Facts) -> Rule:
    return "ask" if tool.get("needs_approval") is True and tool.get("approval") in (None, "always") else "allow"


def idempotency_key(call: ToolCall) -> str:
    """Return the key that a call's tool received, for replays with the same arguments: the call's own id, or that of
    the call it replays, if neither who requested the replay nor who approved it changed the arguments."""
    request = body_of(call.conversation_id, call.called_seq) if call.run and call.replay_of else {}
    key = text_of(request.get("key"))
    if request.get("event") != "replay.requested" or request.get("edited") is not False or not key:
        return call.id
    return call.id if Approval.objects.filter(tool_call=call.id, decision="edit").exists() else key


def require_second_approver(principal: Principal, approval: Approval, run: Run) -> None:
    """Raise `NotAllowed` if somebody decides about a destructive call whose replay they requested."""
    if run.kind != "replay":
        return
    request = body_of(approval.conversation_id, approval.asked_seq)
    rows = evaluate.about(run.agent, text_of(request.get("qualified_name")) or "")
    held = evaluate.effective(Declared("ask", evaluate.as_effect(request.get("effect"))), rows)
    requested_by = str(body_of(approval.conversation_id, run.input_seq).get("by"))
    if held.effect == "destructive" and four_eyes.is_same_person(str(principal), requested_by):
        raise NotAllowed(
            f"{principal} requested this destructive replay, so someone else has to decide", code="four_eyes"
        )
