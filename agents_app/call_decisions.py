"""What was decided about a tool call: whether it runs, or why the rules refuse it. No Django, as in `run_scope`."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from conversations.runs.policy.evaluate import PolicyRule


class Decision(NamedTuple):
    """What was decided about a call: by a person, by an auto-approval rule, or by its deadline. `digest` is of the
    arguments that were decided about, as they run."""

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
    row: "PolicyRule | None" = None
