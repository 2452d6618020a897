"""`chat_send` as the agents' tool: the client library's `send_message`, with what the run knows."""

import json
from typing import Any

from agents import RunContextWrapper, default_tool_error_function, function_tool

from agents_app.run_scope import current_scope
from switchboard import BusError, send_message


def _why_not(ctx: RunContextWrapper[Any], error: Exception) -> str:
    """Return for the model why nothing was sent, so that it does not repeat what is refused."""
    if isinstance(error, BusError | ValueError):
        return f"Error, not sent: {error}"
    return default_tool_error_function(ctx, error)


@function_tool(failure_error_function=_why_not)
def chat_send(
    ctx: RunContextWrapper[Any], recipient: str, content: str, conversation_id: str | None = None
) -> dict[str, Any]:
    """Send a message to a conversation or to another agent.

    Args:
        recipient: "chat:" and a conversation's id, or "agent:" and an agent's name.
        content: What to say; not blank.
        conversation_id: Where to say it, for an agent; leave it out to stay in this conversation.
    """
    return SendResult(send_message(recipient, content, conversation_id=conversation_id, context=context_of(ctx)))


class SendResult(dict[str, Any]):
    """The result of `send_message`. As text it is JSON, since that is how the SDK passes a tool's result to a model."""

    def __str__(self) -> str:
        return json.dumps(self, ensure_ascii=False)


def context_of(ctx: RunContextWrapper[Any]) -> dict[str, Any]:
    """Return what `send_message` needs of a run: the conversation, the agent, the answered message's metadata."""
    scope, agent = current_scope(), getattr(ctx, "agent", None)
    of_team = getattr(ctx.context, "conversation_id", None)
    if of_team is None and isinstance(ctx.context, dict):
        of_team = ctx.context.get("conversation_id")
    fields = {
        "conversation_id": scope.conversation if scope else of_team,
        "agent": getattr(agent, "name", None),
        "metadata": dict(scope.message_metadata) if scope else {},
    }
    return {name: value for name, value in fields.items() if value}
