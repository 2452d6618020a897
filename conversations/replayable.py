"""What a recorded call could do today: its tool found again by registered identity, or why not. Reads rows, starts
nothing. Called by the pages of a call, the API, and `actions.replays`, which does it.

A tool is found by the agent that called it, the lookup key, the origin and the MCP server, never by a name alone: a
tool that took over another's name is another tool.
"""

import json
from dataclasses import dataclass, field
from typing import Any

from conversations import policy
from conversations.errors import NotAllowed
from conversations.models import Agent, Approval, Event, Run, ToolCall
from conversations.nodes import database_time
from conversations.policy import EFFECTS, Declared, Effect, Row, Rule
from conversations.principals import Principal
from conversations.tools.offers import Facts, entries

PRESENT = ("lookup_key", "origin", "mcp_server")  # what makes two tools of an agent the same one
FREE: tuple[Effect, ...] = ("read",)  # done on one click, with whatever arguments
KEYED: Effect = "idempotent"  # done on one click under the first call's key, with the recorded arguments


@dataclass(frozen=True, slots=True)
class Today:
    """A call's tool as it is offered now. `facts` is empty where there is none; `why_not` is empty where it can run."""

    agent: str
    team: str = ""
    facts: Facts = field(default_factory=dict)
    why_not: str = ""
    effect: Effect = "unsafe"
    rule: Rule = "allow"
    by: Row | None = None
    effect_by: Row | None = None
    notes: tuple[str, ...] = ()

    @property
    def tool(self) -> str:
        """Its qualified name: what is typed to make an unsafe call again, and what a grant is about."""
        return self.text("name")

    @property
    def schema(self) -> str:
        """The hash of the schema that arguments have to fit."""
        return self.text("schema")

    def text(self, name: str) -> str:
        """Answer a fact that is a text, else nothing."""
        value = self.facts.get(name)
        return value if isinstance(value, str) else ""

    def is_free(self, *, is_edited: bool) -> bool:
        """Tell whether one click is enough: nothing is changed by it, or nothing more than was changed already."""
        return self.effect in FREE or (self.effect == KEYED and not is_edited)

    @property
    def needs_second(self) -> bool:
        """Tell whether a second person decides: what destroys, where the policy or the code has a person asked."""
        return self.effect == "destructive" and self.rule == "ask"


def of_call(call: ToolCall, told: dict[str, Any], *, rows: policy.Rows | None = None) -> Today:
    """Answer what a call's tool is today; `told` is the body of the event that called it. Sync.

    `rows` are the operators' rules, where they are to be those of this transaction.
    """
    if why := _never(call, told):
        return Today(call.agent, why_not=why)
    found = _offered(call, told)
    if isinstance(found, str):
        return Today(call.agent, why_not=found)
    row, facts = found
    rules = policy.rows() if rows is None else rows
    declared = Declared(_rule(facts), _effect(facts))
    held = policy.effective(declared, policy.matching(rules, call.agent, str(facts.get("name") or "")))
    return Today(
        call.agent, row.team, facts, _not_now(row, facts, held), held.effect, held.rule, held.by, held.effect_by,
        tuple(_notes(call, facts)),
    )  # fmt: skip


def named_by(told: dict[str, Any]) -> dict[str, str]:
    """Answer the registered identity that an event of a call tells; empty texts where it tells none."""
    return {name: _text(told.get(name)) for name in PRESENT}


def _never(call: ToolCall, told: dict[str, Any]) -> str:
    """Say why a call of this kind is never made from here."""
    if call.run is None:
        return "It was only observed: its agent runs elsewhere, so nothing here can make this call."
    if call.origin == "external":
        return "The client that asked for the response runs this tool, not this system."
    if call.origin == "hosted":
        return "It runs only within a response whose request names it: send that request again."
    if not call.lookup_key:
        return "The record holds no registered identity of its tool, and a name alone is not enough."
    return ""


def _offered(call: ToolCall, told: dict[str, Any]) -> tuple[Agent, Facts] | str:
    """Find the tool among what its agent is offered, in a team that is served first; else say why there is none."""
    agents = list(Agent.objects.filter(name=call.agent).order_by("-served_until", "-is_entry", "team"))
    if not agents:
        if told.get("parent_call"):
            return f"{call.agent} runs only inside another call: replay that call, and it runs anew in it."
        return f"No team here has an agent {call.agent} any more."
    wanted, others = named_by(told), list[Facts]()
    for row in agents:
        for facts in entries(row.tools):
            if {name: _text(facts.get(name)) for name in PRESENT} == wanted:
                return row, facts
            others.append(facts)
    return _missing(call, wanted, others)


def _missing(call: ToolCall, wanted: dict[str, str], others: list[Facts]) -> str:
    if any(facts.get("lookup_key") == wanted["lookup_key"] for facts in others):
        return f"{call.agent} has another tool under this name now, of another origin: it is not the one that ran."
    if wanted["mcp_server"]:
        return f"{call.agent} is not offered it now: its MCP server {wanted['mcp_server']} is away, or dropped it."
    if any(facts.get("public_name") == call.name for facts in others):
        return f"{call.agent} has only a tool of the same public name in another namespace, which is another tool."
    return f"{call.agent} is not offered this tool any more: it was removed, or renamed."


def _not_now(row: Agent, facts: Facts, held: policy.Effective) -> str:
    if row.served_until <= database_time():
        return f"No worker serves {row.name} now."
    if "approval_keys" in facts and "enabled" not in facts:
        return "It runs at the model's provider, not here."
    if facts.get("enabled") == "never":
        return "It is switched off (is_enabled)."
    if held.rule == "deny" and held.by is not None:
        note = f": {held.by.note}" if held.by.note else ""
        return f"The operators' policy denies it (set by {held.by.updated_by}){note}."
    return ""


def _notes(call: ToolCall, facts: Facts) -> list[str]:
    """Say what goes with making the call today."""
    notes: list[str] = []
    if call.schema and facts.get("schema") != call.schema:
        notes.append("Its schema has changed since: the arguments have to fit today's.")
    if inside := facts.get("agent_inside"):
        notes.append(f"It starts a nested run: {inside} works anew, and its model is asked.")
    if server := facts.get("mcp_server"):
        notes.append(f"The call goes to the MCP server {server}, over the connection that its worker has.")
    if facts.get("is_deferred") is True:
        notes.append("A model has to search for it first; a replay need not.")
    if (enabled := facts.get("enabled")) not in (None, "always"):
        notes.append(f"{enabled} decides whether it is enabled when it is made.")
    if (asks := facts.get("approval")) not in (None, "always", "never"):
        notes.append(f"{asks} decides whether a person is asked.")
    return notes


def _rule(facts: Facts) -> Rule:
    return "ask" if facts.get("needs_approval") is True and facts.get("approval") in (None, "always") else "allow"


def _effect(facts: Facts) -> Effect:
    return next((one for one in EFFECTS if one == facts.get("effect")), "unsafe")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def first_of(call: ToolCall) -> str:
    """Answer the first call of a line of replays, under whose key an idempotent tool knows them all."""
    found = call
    for _ in range(100):
        before = found.replay_of and ToolCall.objects.filter(id=found.replay_of, run__isnull=False).first()
        if not before:
            return found.id
        found = before
    return found.id


def arguments_of(told: dict[str, Any]) -> str:
    """Answer the arguments that a call was sent with, as text."""
    raw = told.get("args_raw")
    return raw if isinstance(raw, str) else json.dumps(told.get("args") or {}, ensure_ascii=False)


def require_second(principal: Principal, found: Approval, run: Run) -> None:
    """Raise `NotAllowed` when somebody decides about a destructive call that they themselves have made again."""
    if run.kind != "replay":
        return
    asked = body_of(found.conversation_id, found.asked_seq)
    held = policy.for_tool(run.agent, _text(asked.get("qualified_name")), Declared("ask", _effect(asked)))
    if held.effect == "destructive" and body_of(found.conversation_id, run.input_seq).get("by") == str(principal):
        raise NotAllowed(
            f"{principal} asked for this replay, and it is destructive: somebody else decides", code="four_eyes"
        )


def body_of(conversation: int, seq: int) -> dict[str, Any]:
    """Answer what an event says; nothing of one that is not there, or says no object."""
    told = Event.objects.filter(conversation=conversation, seq=seq).values_list("body", flat=True).first()
    found: Any = json.loads(told) if told else {}
    return found if isinstance(found, dict) else {}
