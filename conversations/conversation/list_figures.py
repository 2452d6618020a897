"""Count the conversations that the first page of the list leaves out, for the figures above it. Called by
`conversation_list`."""

import time
from collections.abc import Collection

from conversations.conversation.imported_history import LIVE_FOR, ConversationEnd, history_among
from conversations.models import Conversation, Run

MAX_COUNTED = 500  # recent conversations, and those with runs


def live_beyond(shown: Collection[int], needing: Collection[int]) -> tuple[int, bool]:
    """Return how many live conversations there are besides those shown and those that need a person (row ids), and
    whether there may be more."""
    since = time.time_ns() // 1000 - LIVE_FOR * 1_000_000
    newest = Conversation.objects.visible().filter(last_at__gt=since).newest_first()
    recent = [ConversationEnd(*row) for row in newest.values_list(*ConversationEnd._fields)[:MAX_COUNTED]]
    top = Run.objects.filter(kind="agent", parent_call=None)
    running, queued = (
        list(top.filter(status=status).values_list("conversation", flat=True)[:MAX_COUNTED])
        for status in ("running", "queued")
    )
    left = [end for end in recent if end.id not in shown and end.id not in needing]
    live = {end.id for end in left} - history_among(left)
    busy = {*running, *queued} - set(shown) - set(needing) - live
    busy = set(Conversation.objects.visible().filter(id__in=busy).values_list("id", flat=True)) if busy else busy
    return len(live | busy), any(len(rows) == MAX_COUNTED for rows in (recent, running, queued))
