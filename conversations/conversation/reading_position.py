"""Where a page of a conversation opens: one that is over at its beginning, or where the reader left off. Read by pages.

A conversation is over when nothing in it runs, waits or is held by a person, and nothing has happened for some minutes;
an imported one at once.
"""

import time

from conversations.conversation.conversation_row import LIVE_FOR
from conversations.models import Approval, Conversation, Event, ReadMarker, Run, User


def first_shown(conversation: Conversation, reader: object) -> int:
    """Return the event with which a page begins; 0: it shows the end, since the conversation goes on."""
    if not conversation.head_seq or not is_over(conversation):
        return 0
    if not isinstance(reader, User):
        return 1
    markers = ReadMarker.objects.filter(user=reader, conversation=conversation)
    last_seq = markers.values_list("last_seq", flat=True).first() or 0
    return last_seq + 1 if last_seq < conversation.head_seq else 1


def is_over(conversation: Conversation) -> bool:
    """Return whether nothing more is to be expected in a conversation unless somebody begins anew."""
    if conversation.is_held or conversation.is_demo:
        return False
    if conversation.last_at > time.time_ns() // 1000 - LIVE_FOR * 1_000_000 and not _is_imported(conversation):
        return False
    has_run = Run.objects.of(conversation).exists()
    return not has_run and not Approval.objects.open().filter(conversation=conversation).exists()


def _is_imported(conversation: Conversation) -> bool:
    """Return whether its newest event came by an import, as its first did."""
    if not conversation.opened_by.startswith("import:"):
        return False
    newest = Event.objects.filter(conversation=conversation, seq=conversation.head_seq)
    return newest.filter(principal__startswith="import:").exists()
