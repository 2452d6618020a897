"""Fold the projections of the whole record again (law I). On a whole record it changes nothing."""

from collections.abc import Iterator

from django.db import connection

from conversations import envelopes, projections
from conversations.log import rows
from conversations.log.writing import writing
from conversations.models import Approval, Conversation, Event, Participant, Response, ToolCall, Turn
from conversations.principals import is_ours
from conversations.projections import Facts, Fold, Head, forks

PAGE = 5000  # events of one read


def rebuild() -> Iterator[tuple[str, int]]:
    """Rebuild one conversation after the other, each in its own transaction; answer its key and number of events."""
    for key in Conversation.objects.visible().order_by("id").values_list("key", flat=True).iterator():
        yield key, rebuild_conversation(key)


def rebuild_conversation(key: str) -> int:
    """Empty and refold one conversation's rows; answer how many events were folded."""
    with writing(), connection.cursor() as cursor:
        old = rows.lock_heads(cursor, [key], {})[key]
        Approval.objects.filter(conversation_id=old.id).delete()
        ToolCall.objects.filter(conversation_id=old.id).delete()
        Participant.objects.filter(conversation_id=old.id).delete()
        Response.objects.filter(conversation_id=old.id).delete()
        Turn.objects.filter(conversation_id=old.id).delete()
        head, changes = Head(id=old.id, key=key, head_hash=old.head_hash, copied_seq=_copied(old.id)), Fold()
        while _fold_page(head, changes):
            pass
        rows.advance(cursor, [head])
        rows.write_changes(cursor, changes)
    return head.head_seq


def _copied(conversation: int) -> int:
    """Answer up to where a fork's events are copies: the last event that says so stands right after them, since a fork
    of a fork has copied its parent's."""
    said = Event.objects.filter(conversation_id=conversation, kind="conversation.forked")
    told = said.order_by("-seq").values_list("seq", "principal", "body")
    return max((forks.copies(body, seq) for seq, principal, body in told if is_ours(principal)), default=0)


def _fold_page(head: Head, changes: Fold) -> bool:
    """Fold the events after the head; answer whether there were any."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT seq,kind,at,principal,run,body FROM conversations_event"
            " WHERE conversation_id=%s AND seq>%s ORDER BY seq LIMIT %s",
            [head.id, head.head_seq, PAGE],
        )
        page = cursor.fetchall()
    for seq, kind, at, principal, run, body in page:
        head.head_seq = seq
        projections.fold(changes, head, kind, Facts(envelopes.read(body.encode()), at, principal, run, body))
    return bool(page)
