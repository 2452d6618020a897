"""What an import adds to existing conversations: collected until the whole file is read, then stored at once.

A later export of the same source may contain more of an imported conversation. Its events have ids (their own, or
`recording.DerivedIds`), so what is already stored is left out.
"""

from collections.abc import Sequence

from conversations.core import principals
from conversations.core.errors import Conflict, TooLarge
from conversations.events import log
from conversations.events.log import NewEvent
from conversations.events.log.import_staging import EXISTS
from conversations.models import Conversation, Event

MAX_HELD = 64 << 20  # bytes of bodies: they are stored in one transaction, for which live writers wait
BLOCK = 500  # events looked up, or stored, in one statement


class Additions:
    """The new events of one file for existing conversations."""

    def __init__(self) -> None:
        self.keys: dict[str, int] = {}  # row ids
        self._whole: list[str] = []  # those of which the file must have all that was imported earlier
        self._events: list[NewEvent] = []
        self._ids: set[tuple[str, str]] = set()
        self._bytes = 0

    def begin(self, key: str, *, is_whole: bool = False) -> bool:
        """Return whether this conversation exists. Raises Conflict for one that was not imported. `is_whole`: the file
        must have all events that were imported earlier, since only its name tells that it is the same conversation."""
        conversation = Conversation.objects.filter(key=key, is_staged=False).first()
        if conversation is None:
            return False
        first = Event.objects.filter(conversation=conversation).order_by("seq").first()
        is_fork = conversation.copied_seq > 0  # what its first events are was imported somewhere else
        if is_fork or first is None or not principals.is_imported(first.principal):
            raise Conflict(
                f"conversation {key!r} was not created by an import, so nothing can be added to it", code=EXISTS
            )
        self.keys[key] = conversation.pk
        if is_whole:
            self._whole.append(key)
        return True

    def take(self, events: Sequence[NewEvent]) -> None:
        """Collect the events that are not stored yet; an event without an id is always new. Raises TooLarge."""
        for at in range(0, len(events), BLOCK):
            block = events[at : at + BLOCK]
            key = block[0].conversation or ""
            ids = [event.event_id for event in block if event.event_id]
            rows = Event.objects.filter(conversation__key=key, event_id__in=ids)
            self._ids.update((key, stored) for stored in rows.values_list("event_id", flat=True) if stored)
            for event in block:
                self._hold(key, event)

    def append(self) -> None:
        """Store the collected events, in the caller's transaction. Raises Conflict where an id was erased, or where a
        whole conversation lacks events."""
        self._lock()
        for key in self._whole:
            self._require_earlier(key)
        for at in range(0, len(self._events), BLOCK):
            log.append(self._events[at : at + BLOCK])

    def _lock(self) -> None:
        """Lock the conversations, in id order: `log.append` would reopen one whose id was erased meanwhile."""
        held: dict[str, int] = {}
        ids = sorted(self.keys.values())
        for at in range(0, len(ids), BLOCK):
            rows = Conversation.objects.select_for_update().filter(id__in=ids[at : at + BLOCK]).order_by("id")
            held |= dict(rows.values_list("key", "id"))
        for key, id_ in self.keys.items():
            if held.get(key) != id_:
                raise Conflict(f"conversation {key!r} no longer exists: its id was erased")

    def _require_earlier(self, key: str) -> None:
        imported = Event.objects.filter(conversation_id=self.keys[key], principal__startswith=principals.IMPORTED)
        ids = imported.exclude(event_id=None).values_list("event_id", flat=True)
        if lacking := sum((key, stored) not in self._ids for stored in ids.iterator(chunk_size=BLOCK)):
            events = "event" if lacking == 1 else "events"
            raise Conflict(
                f"this file lacks {lacking:,} {events} that an earlier import stored in conversation {key!r}, so it is"
                " another conversation of that name: import it under another id (--conversation)"
            )

    def _hold(self, key: str, event: NewEvent) -> None:
        if event.event_id:
            if (key, event.event_id) in self._ids:
                return
            self._ids.add((key, event.event_id))
        self._bytes += len(event.body)
        if self._bytes > MAX_HELD:
            raise TooLarge(f"an update must add at most {MAX_HELD >> 20} MiB: import it under another id")
        self._events.append(event._replace(starts_no_run=True))
