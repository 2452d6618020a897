"""Fold the projections of the whole record again (law I). On an intact record this changes nothing.

It can be stopped at any time: every transaction leaves correct rows, and the next run continues after the last
conversation whose completion was recorded.
"""

import time
from collections.abc import Iterator
from contextlib import suppress

from conversations.core import write_ahead_log
from conversations.core.write_transaction import write_transaction
from conversations.events.log.refold import Gone, Refold
from conversations.models import Conversation, Meta

PAGE = 500  # conversations of one read
NOTE_EVERY = 1.0  # seconds between two notes of how far it came
_NAME = "rebuild"


def rebuild() -> Iterator[tuple[str, int]]:
    """Rebuild the conversations one by one, from where the last run stopped; yield each key and its number of
    events."""
    noted_at = time.monotonic()
    for pk, key in _conversations(position()):
        refold = Refold(pk, key)
        with suppress(Gone):
            refold.run()
        write_ahead_log.shorten()
        yield key, refold.head.head_seq
        if time.monotonic() - noted_at > NOTE_EVERY:
            _note(pk)
            noted_at = time.monotonic()
    forget()


def position() -> int:
    """Return the row id of the last conversation that an interrupted run completed; 0 if there is none."""
    return int(Meta.objects.filter(name=_NAME).values_list("value", flat=True).first() or 0)


def forget() -> None:
    """Start from the first conversation next time."""
    with write_transaction():
        Meta.objects.filter(name=_NAME).delete()


def _note(pk: int) -> None:
    with write_transaction():
        Meta.objects.update_or_create(name=_NAME, defaults={"value": str(pk)})


def _conversations(after: int) -> Iterator[tuple[int, str]]:
    visible = Conversation.objects.visible().order_by("id").values_list("id", "key")
    while page := list(visible.filter(id__gt=after)[:PAGE]):
        yield from page
        after = page[-1][0]
