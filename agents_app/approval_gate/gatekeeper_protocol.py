"""What the gate asks of the worker, and a decision that a person took."""

from typing import Any, NamedTuple, Protocol

from agents import FunctionTool
from agents.tool_context import ToolContext

from conversations.runs.policy.evaluate import PolicyRule, Rows


class Decision(NamedTuple):
    """A decision. `digest` is of the arguments that were decided about, as they run."""

    decision: str
    message: str
    digest: str = ""
    arguments: str | None = None
    """what runs instead of what was asked for, of an edit"""
    output: str = ""
    """what a person answered, of a response"""
    by: str = ""
    server: str = ""
    """the MCP server of the call's tool"""


class Refusal(NamedTuple):
    """Why a call does not go on: `reason` for people, `model_message` for the model.

    `by`: policy, allowed_tools, tool_choice.
    """

    by: str
    reason: str
    model_message: str
    row: PolicyRule | None = None


class GatekeeperProtocol(Protocol):
    """What the gate asks and tells: a run's worker has one in its scope."""

    async def rules(self) -> Rows:
        """Return the operators' rules, at most half a second old."""

    async def refuse(self, context: ToolContext[Any], agent: Any, tool: FunctionTool, refusal: Refusal) -> None:
        """Record a refused call."""

    def decision(self, context: ToolContext[Any]) -> Decision | None:
        """Return what a person decided about a call that is about to be checked."""

    def decision_of_running(self, context: ToolContext[Any]) -> Decision | None:
        """Return what a person decided about a call that is invoked now."""

    def hold(self, call_id: str) -> None:
        """Note that a call has to wait for a person, unless a rule approves it."""

    async def apply_auto_approval(self, context: ToolContext[Any], agent: Any, tool: FunctionTool) -> bool:
        """Have an auto-approval rule approve a call that has to wait; record that it did."""

    def tell(self, context: ToolContext[Any], replacement: Any, output: Any) -> None:
        """Note that a model is told `replacement` where a tool gave `output`."""
