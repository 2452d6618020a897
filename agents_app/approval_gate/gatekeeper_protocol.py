"""What the gate needs from the worker, and the decision that a person made about a call."""

from typing import Any, NamedTuple, Protocol

from agents import FunctionTool
from agents.tool_context import ToolContext

from conversations.runs.policy.evaluate import PolicyRule, Rows


class Decision(NamedTuple):
    """A person's decision. `digest` is of the arguments that were decided about, as they run."""

    decision: str
    message: str
    digest: str = ""
    arguments: str | None = None
    """of an edit: what runs instead of the requested arguments"""
    output: str = ""
    """of a response: the output that a person gave"""
    by: str = ""
    server: str = ""
    """the MCP server of the call's tool"""


class Refusal(NamedTuple):
    """Why a call may not run: `reason` for people, `model_message` for the model.

    `by`: policy, allowed_tools, tool_choice.
    """

    by: str
    reason: str
    model_message: str
    row: PolicyRule | None = None


class GatekeeperProtocol(Protocol):
    """The worker's side of the gate; each run has one in its scope."""

    async def rules(self) -> Rows:
        """Return the operators' rules, at most half a second old."""

    async def refuse(self, context: ToolContext[Any], agent: Any, tool: FunctionTool, refusal: Refusal) -> None:
        """Record a refused call."""

    def decision(self, context: ToolContext[Any]) -> Decision | None:
        """Return what a person decided about a call that is about to be checked."""

    def decision_of_running(self, context: ToolContext[Any]) -> Decision | None:
        """Return what a person decided about a call that is invoked now."""

    def mark_needs_approval(self, call_id: str) -> None:
        """Mark a call that needs a person's approval unless a rule approves it."""

    async def apply_auto_approval(self, context: ToolContext[Any], agent: Any, tool: FunctionTool) -> bool:
        """Have an auto-approval rule approve a call that needs approval; return whether one did, which is recorded."""

    def record_replaced_output(self, context: ToolContext[Any], replacement: Any, output: Any) -> None:
        """Note that a model gets `replacement` instead of a tool's `output`: the record keeps the output."""
