"""The figures above the conversation list: how many live conversations its first page leaves out, and the trends, from
what the figures count, of live conversations from the rows, and of runs from their ids, which tell when each was
queued. Called by `conversation_list`."""

import re
import time
from collections.abc import Collection, Iterable, Mapping

from conversations.conversation.conversation_row import ConversationRow
from conversations.conversation.imported_history import LIVE_FOR, ConversationEnd, history_among
from conversations.core import recent_activity
from conversations.models import Conversation, Run
from conversations.rendering.sparkline import Sparkline, sparkline

HOUR_US = 3_600_000_000
WAITS, WAIT_US = recent_activity.KEPT, recent_activity.SPAN_US  # spans of the last hour
FAILURES, FAILURE_US = 24, HOUR_US
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7")
MAX_RUNS = 5_000  # of the last hour, the newest
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


def runs_queued(now: int) -> list[int]:
    """Return when the runs of the hour before `now` were queued, except those inside calls and messages
    that another run took in; µs UTC."""
    stamp = f"{(now - HOUR_US) // 1000:012x}"  # ids are UUIDv7: ordered by time
    recent = Run.objects.filter(id__gte=f"{stamp[:8]}-{stamp[8:]}", parent_call=None).exclude(status="delivered")
    ids = recent.order_by("-id").values_list("id", flat=True)[:MAX_RUNS]
    return [int(id_[:8] + id_[9:13], 16) * 1000 for id_ in ids if _UUID.match(id_)]


def drawings(moments: Mapping[str, Iterable[int]], live: Iterable[ConversationRow], now: int) -> dict[str, Sparkline]:
    """Return a drawing for each figure that has something to show, by its name. `moments`: when those of each figure
    but the live ones began, µs UTC, as is `now`."""
    counts = {
        "attention": _by_span(moments["attention"], now, WAITS, WAIT_US),
        "live": _events(live, now),
        "runs": _by_span(moments["runs"], now, WAITS, WAIT_US),
        "failed": _by_span(moments["failed"], now, FAILURES, FAILURE_US),
    }
    words = {
        "attention": ("conversation", "began to wait in the last hour"),
        "live": ("event", "of live conversations in the last hour"),
        "runs": ("run", "queued in the last hour"),
        "failed": ("conversation", "failed in the last 24 hours"),
    }
    return {name: sparkline(spans, *words[name]) for name, spans in counts.items() if any(spans)}


def _events(rows: Iterable[ConversationRow], now: int) -> list[int]:
    spans = [recent_activity.recent(row.activity, row.last_at, now) for row in rows]
    return [sum(counts) for counts in zip(*spans, strict=True)]


def _by_span(moments: Iterable[int], now: int, spans: int, span_us: int) -> list[int]:
    """Count moments in the spans up to now, the oldest first; earlier ones are left out."""
    counts = [0] * spans
    for at in moments:
        ago = max(0, now - at) // span_us
        if ago < spans:
            counts[spans - 1 - ago] += 1
    return counts
