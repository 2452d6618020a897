"""Where a conversation's page opens: if it has ended, at its beginning or where the reader stopped. Called by pages.

A conversation has ended if nothing in it runs, waits or is taken over and nothing has happened for some minutes; an
imported one whose events happened long before at once.
"""

import time

from conversations.conversation.imported_history import LIVE_FOR, ConversationEnd, history_among
from conversations.models import Approval, Conversation, ReadMarker, Run, User


def first_shown(conversation: Conversation, reader: object) -> int:
    """Return the event with which the page begins; 0 if it shows the end, since the conversation is ongoing."""
    if not conversation.head_seq or not is_over(conversation):
        return 0
    if not isinstance(reader, User):
        return 1
    markers = ReadMarker.objects.filter(user=reader, conversation=conversation)
    last_seq = markers.values_list("last_seq", flat=True).first() or 0
    return last_seq + 1 if last_seq < conversation.head_seq else 1


def is_over(conversation: Conversation) -> bool:
    """Return whether a conversation has ended: nothing more is expected unless someone starts again."""
    if conversation.is_held or conversation.is_demo:
        return False
    if conversation.last_at > time.time_ns() // 1000 - LIVE_FOR * 1_000_000 and not _is_history(conversation):
        return False
    has_run = Run.objects.of(conversation).exists()
    return not has_run and not Approval.objects.open().filter(conversation=conversation).exists()


def _is_history(conversation: Conversation) -> bool:
    end = ConversationEnd(conversation.id, conversation.opened_by, conversation.head_seq, conversation.last_at)
    return bool(history_among([end]))
