"""The hue of each agent in a conversation: its own, unless an earlier agent there has it; then the free one farthest
from those taken, and once none is free a pattern in addition (`hue_slots`). Called before drawing.

The order of agents is read from the record's beginning, so all processes, reloads and forks agree; later events change
nothing. Once all agents or all slots are known, nothing more is read.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock

from django.db import connection

from conversations.core import hidden_characters
from conversations.events.log.records import Stored
from conversations.models import Participant
from conversations.rendering import participant_marks
from conversations.rendering.hue_slots import SLOTS
from conversations.rendering.participant_marks import mark_for

MAX_CONVERSATIONS = 512  # conversations
BLOCK = 500  # events of one read
MAX_BLOCKS = 20  # of a conversation whose agents cannot be found; those that are left have hues of their own
_BEGINNING = 1000  # characters of an event that are looked at
_NAMED = re.compile(r'"(sender|recipient|agent|from_agent|to_agent|handler)"\s*:\s*"((?:[^"\\]){1,200})"')
_BARE = ("agent", "from_agent", "to_agent", "handler")

_conversations: "OrderedDict[str, ConversationHues]" = OrderedDict()
_lock = Lock()


class ConversationHues:
    """The agents of one conversation in order of appearance, up to event `seq`. Used by several threads at once."""

    def __init__(self, first: str) -> None:
        self.first = first  # the hash of event 1: of another history nothing holds
        self.head: tuple[int, str] | None = None  # up to which nothing is left to read
        self.seq = 0
        self.names: dict[str, None] = {}  # replaced, never changed: other threads go through it
        self._learning = Lock()

    @property
    def is_full(self) -> bool:
        """Return whether every slot is taken."""
        return len(self.names) >= SLOTS

    def learn(self, seq: int, beginning: str) -> None:
        """Add the agents that the next event names."""
        with self._learning:
            for name in _agents_in(beginning):
                if not self.is_full and name not in self.names:
                    self.names = {**self.names, name: None}
            self.seq = max(self.seq, seq)

    def hues(self) -> Mapping[str, int]:
        """Return the slot of each agent, by displayed name."""
        slots = participant_marks.distinct_slots(self.names)
        return {hidden_characters.spelled_out(name): slot for name, slot in slots.items()}


def of_conversation(key: str, head: tuple[int, str] | None = None) -> ConversationHues:
    """Return the hues of a conversation's agents, read up to now, or cached if `head` (seq, hash) is unchanged."""
    with _lock:
        cached = _conversations.get(key)
    if cached is not None and head is not None and cached.head == head:
        return cached
    hues = _cached(key)
    _read_on(key, hues)
    hues.head = head
    return hues


def follow(key: str, hues: ConversationHues, events: Sequence[Stored]) -> Mapping[str, int]:
    """Return the hues after the newest events; if some before them were missed, those are read from the record."""
    if hues.is_full or events[-1].seq <= hues.seq:
        return hues.hues()
    if events[0].seq > hues.seq + 1:
        _read_on(key, hues)
    for event in events:
        if event.seq > hues.seq:
            hues.learn(event.seq, event.body[:_BEGINNING] if event.kind != "token" else "")
    return hues.hues()


def _cached(key: str) -> ConversationHues:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.hash FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id"
            " WHERE c.key=%s AND e.seq=1",
            [key],
        )
        row = cursor.fetchone()
    first = row[0] if row else ""
    with _lock:
        hues = _conversations.pop(key, None)
        if hues is None or hues.first != first:
            hues = ConversationHues(first)
        _conversations[key] = hues
        while len(_conversations) > MAX_CONVERSATIONS:
            _conversations.popitem(last=False)
    return hues


def _read_on(key: str, hues: ConversationHues) -> None:
    names = Participant.objects.filter(conversation__key=key, kind="agent").values_list("name", flat=True)
    wanted = {name.removeprefix("agent:") for name in names[: 3 * SLOTS]}
    for _ in range(MAX_BLOCKS):
        if hues.is_full or wanted <= hues.names.keys():
            return
        rows = _beginnings(key, hues.seq)
        for seq, beginning in rows:
            hues.learn(seq, beginning)
        if len(rows) < BLOCK:
            return


def _beginnings(key: str, after: int) -> list[tuple[int, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.seq, substr(e.body, 1, %s) FROM conversations_event e"
            " JOIN conversations_conversation c ON c.id=e.conversation_id"
            " WHERE c.key=%s AND e.seq>%s AND NOT e.kind='token' ORDER BY e.seq LIMIT %s",
            [_BEGINNING, key, after, BLOCK],
        )
        return list(cursor.fetchall())


def _agents_in(beginning: str) -> Iterator[str]:
    for field, name in _NAMED.findall(beginning):
        if field in _BARE or mark_for(name).kind == "agent":
            yield name.removeprefix("agent:")
