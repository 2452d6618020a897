"""Read the provider's id of a recorded call, by which its output is sent to the model."""

from conversations.core.json_values import text_of
from conversations.events import payload
from conversations.events.recorded_arguments import body_of
from conversations.models import ToolCall


def call_id_of(call: ToolCall) -> str | None:
    """Return a call's id as the provider gave it: in the tables a long one is shortened (`payload.short_call_id`)."""
    if call.call_id is None or len(call.call_id) < payload.MAX_CALL_ID:
        return call.call_id
    return text_of(body_of(call.conversation_id, call.called_seq).get("tool_call_id")) or call.call_id
