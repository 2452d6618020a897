"""What the gate asks and tells in a worker's run: the operators' rules, and `policy.refused`. Made by the runner."""

from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool
from agents.tool_context import ToolContext

from agents_app import asking, identity
from agents_app.calls import Known
from agents_app.decided import Decided
from agents_app.gate import Gate, Refusal
from agents_app.hooks import Do, Steps, arguments, asked_of, digest
from agents_app.nesting import current
from agents_app.pen import Pen, cut, mask
from agents_app.roster import Roster
from conversations import always, policy
from conversations.actions import granting
from conversations.actions.runs import Body
from conversations.errors import Fenced
from conversations.policy import Row, Rows


class Gatekeeper:
    """The keeper of one attempt. `steps` answers its hooks, which a resumed run has anew."""

    def __init__(self, pen: Pen, roster: Roster, do: Do, steps: Callable[[], Steps]) -> None:
        self._pen, self._roster, self._do, self._steps = pen, roster, do, steps
        self._held: set[tuple[str | None, str]] = set()  # calls that would wait for a person

    async def rules(self) -> Rows:
        """Answer the operators' rules: one query in half a second, of all runs of the worker."""
        found = policy.known()
        return found if found is not None else await self._read()

    def decision(self, context: ToolContext[Any]) -> Decided | None:
        """Answer what a person decided about a call that is about to be checked."""
        return self._steps().decision(context.tool_call_id, asked_of(context))

    def decision_of_running(self, context: ToolContext[Any]) -> Decided | None:
        """Answer what a person decided about a call that is invoked now."""
        return self._steps().decision_of_running(context.tool_call_id)

    def tell(self, context: ToolContext[Any], said: Any, given: Any) -> None:
        """Note that a model is told more than a tool gave."""
        self._steps().tell(context.tool_call_id, said, given)

    def hold(self, call_id: str) -> None:
        """Note that a call has to wait for a person, unless a rule approves it."""
        self._held.add((_parent(), call_id))

    async def by_rule(self, context: ToolContext[Any], agent: Agent[Any], gate: Gate) -> bool:
        """Have an always rule approve a call that has to wait; record that it did, and which. A query only where a
        rule is about the tool."""
        key = _parent(), context.tool_call_id
        if key not in self._held:
            return False
        self._held.discard(key)
        known = always.known()
        rules = known if known is not None else await self._do(always.rules)
        if identity.identity_of(gate.tool).lookup_key not in rules:
            return False
        return await self._approved(context, agent, gate)

    async def _approved(self, context: ToolContext[Any], agent: Agent[Any], gate: Gate) -> bool:
        steps, parent, call_id, sent = self._steps(), _parent(), context.tool_call_id, asked_of(context)
        if steps.calls.decided(call_id, digest(mask(sent))) is not None:
            return False  # a person was asked already
        ours = steps.calls.new(call_id)
        asked = asking.question(agent.name, steps.turns.current, ours, call_id, sent, parent=parent)
        asked |= asking.of_tool(gate.tool, context.tool_namespace, agent.name, self._roster)
        about = policy.matching(policy.latest(), agent.name, gate.tool.qualified_name)
        asked |= {"why": asking.why(gate.tool.qualified_name, gate.tool, about)}
        try:
            rule = await self._do(granting.approve_call, self._pen.claim, cut(asked))
        except Fenced:
            self._pen.is_lost = True
            raise
        if rule is None:
            steps.calls.give_back(call_id, ours)
            return False
        steps.calls.approve(Known(ours, call_id, "approved", digest(mask(sent)), parent), sent)
        by = f"a rule of {rule.made_by}"
        steps.decided = {**steps.decided, ours: Decided("approve", "", digest=digest(sent), by=by)}
        return True

    async def refuse(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, refusal: Refusal) -> None:
        """Commit that a call was refused; only then is the model told."""
        steps, parent = self._steps(), _parent()
        call_id = context.tool_call_id
        ours = steps.calls.decided(call_id) or steps.calls.new(call_id)
        told: Body = {"event": "policy.refused", "agent": agent.name, "turn": steps.turns.current, "tool_call": ours}
        told |= {"tool_call_id": call_id, "effect": self._roster.effect(tool, agent.name)}
        told |= identity.layers(tool, context.tool_namespace)
        told |= arguments(mask(context.tool_arguments)) | ({"parent_call": parent} if parent else {})
        told |= {"reason": refusal.reason, "by": refusal.by}
        await self._pen.store(told | ({"rule": _rule(refusal.row)} if refusal.row else {}))

    async def _read(self) -> Rows:
        found: Rows = await self._do(policy.rows)
        return found


def _parent() -> str | None:
    scope = current()
    return scope.parent_call if scope else None


def _rule(row: Row) -> dict[str, str]:
    return {name: value for name, value in row._asdict().items() if value}
