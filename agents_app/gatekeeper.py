"""What the gate asks and tells in a worker's run: the operators' rules, and `policy.refused`. Made by the runner."""

from collections.abc import Callable
from typing import Any

from agents import Agent, FunctionTool
from agents.tool_context import ToolContext

from agents_app import identity
from agents_app.decided import Decided
from agents_app.gate import Refusal
from agents_app.hooks import Do, Steps, arguments, asked_of
from agents_app.nesting import current
from agents_app.pen import Pen, mask
from agents_app.roster import Roster
from conversations import policy
from conversations.actions.runs import Body
from conversations.policy import Row, Rows


class Gatekeeper:
    """The keeper of one attempt. `steps` answers its hooks, which a resumed run has anew."""

    def __init__(self, pen: Pen, roster: Roster, do: Do, steps: Callable[[], Steps]) -> None:
        self._pen, self._roster, self._do, self._steps = pen, roster, do, steps

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

    async def refuse(self, context: ToolContext[Any], agent: Agent[Any], tool: FunctionTool, refusal: Refusal) -> None:
        """Commit that a call was refused; only then is the model told."""
        steps, scope = self._steps(), current()
        parent = scope.parent_call if scope else None
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


def _rule(row: Row) -> dict[str, str]:
    return {name: value for name, value in row._asdict().items() if value}
