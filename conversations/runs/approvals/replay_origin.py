"""What a person requested, where the call of a replay waits for approval. Called by `inbox`."""

from typing import Any, NamedTuple

from markupsafe import Markup

from conversations.core import page_urls, principals
from conversations.core.errors import NotFound
from conversations.events import recorded_arguments
from conversations.models import Approval, Event, ToolCall
from conversations.rendering import diff_rows, richtext
from conversations.rendering.participant_marks import ParticipantMark, mark_for
from conversations.tool_calls import call_record


class ReplayOrigin(NamedTuple):
    """Who requested a replay and why; the event of the original call (None if the record has lost it), its address; and
    how the arguments differ from those that it ran with."""

    by: ParticipantMark
    reason: Markup
    seq: int | None = None
    href: str = ""
    changes: diff_rows.RenderedDiff | None = None


def of_request(row: Approval, request: dict[str, Any]) -> ReplayOrigin | None:
    """Return what was requested, if the approval request (`request`: its body) is about a replay of ours."""
    if not request.get("replay_of"):
        return None
    call = ToolCall.objects.filter(id=row.tool_call, run__isnull=False, replay_of__isnull=False).first()
    event = Event.objects.filter(conversation=row.conversation_id, seq=call.called_seq).first() if call else None
    if call is None or event is None or event.kind != "replay.requested":
        return None
    body = recorded_arguments.body_of(row.conversation_id, call.called_seq)
    by = principals.doer(event.principal, str(body.get("by") or ""))
    known = ReplayOrigin(mark_for(by, by), richtext.inline(str(body.get("reason") or "")[:2000]))
    try:
        original = call_record.find(call.replay_of or "")
    except NotFound:
        return known
    seq = original.row.called_seq
    changes = diff_rows.draw(original.ran, recorded_arguments.arguments_of(body))
    return known._replace(seq=seq, href=page_urls.event_url(original.conversation_key, seq), changes=changes)
