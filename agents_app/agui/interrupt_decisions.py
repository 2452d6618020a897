"""What was decided about a remote agent's interrupts, as the record has it: no text decides anything (law G). Sync."""

from __future__ import annotations

from collections.abc import Sequence

from agents_app.agui.remote_input import ACTION, Answered
from agents_app.approval_gate import stored_decisions
from agents_app.call_decisions import Decision
from agents_app.recorded_values import recorded_digests
from conversations.models import Run, ToolCall

REFUSED = Decision("reject", "")


def decisions_about(answered: Sequence[Answered], run: str) -> dict[str, Decision]:
    """Return the decisions about those of these calls that a run made, or an earlier run with the same input, by call
    id. A call of theirs that nobody decided about was refused.

    Any other call is nobody's to answer here, whatever its output says: it is of a fork's parent, of an outside claim,
    of a client's request, or of a run that answered another message.
    """
    if not answered or (own := Run.objects.filter(id=run).first()) is None:
        return {}
    attempts = Run.objects.filter(conversation=own.conversation_id, agent=own.agent, input_seq=own.input_seq)
    digests = {call.call_id: recorded_digests(call.arguments) for call in answered}
    calls = ToolCall.objects.filter(run__in=attempts.values("id"), name=ACTION, call_id__in=digests)
    rows = list(calls.order_by("called_seq").values_list("call_id", "run", "id", "arguments_digest"))
    decided = {made_by: stored_decisions.decisions(made_by) for made_by in {row[1] for row in rows} if made_by}
    return {
        call_id: decided[made_by].get(id_, REFUSED)
        for call_id, made_by, id_, digest in rows
        if call_id and made_by and digest in digests[call_id]
    }
