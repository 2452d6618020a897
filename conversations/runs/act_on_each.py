"""Act on rows of many conversations, one after the other, so that a locked conversation delays only its own. Called by
what workers and servers do periodically."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from django.db import OperationalError, connection

from conversations.core.write_transaction import write_transaction
from conversations.events.log import lock_waits
from conversations.events.log.lock_waits import LockedElsewhere
from conversations.models import Conversation


class OfConversation(Protocol):
    """A row that belongs to a conversation."""

    @property
    def conversation_id(self) -> int:
        """Return its conversation's id."""


R = TypeVar("R", bound=OfConversation)


def act_on_each(rows: Iterable[R], act: Callable[[R], bool]) -> Iterator[R]:
    """Act on each row in a separate transaction, with its conversation locked; yield those for which `act` returned
    True. Rows of a conversation that somebody else has locked for 0.1 s are left to the caller's next round."""
    locked: set[int] = set()
    for row in rows:
        if row.conversation_id in locked:
            continue
        try:
            with write_transaction():
                _lock_briefly(row.conversation_id)
                is_done = act(row)
        except LockedElsewhere:
            locked.add(row.conversation_id)
            continue
        if is_done:
            yield row


def _lock_briefly(conversation: int) -> None:
    """Lock a conversation; other rows are then waited for as usual. Raises `LockedElsewhere` after 0.1 s."""
    if connection.vendor == "sqlite":  # the transaction holds the whole file
        return
    with connection.cursor() as cursor:
        lock_waits.set_lock_timeout(cursor, lock_waits.BRIEFLY)
        try:
            Conversation.objects.locked(conversation)
        except OperationalError as error:
            if not lock_waits.is_timeout(error):
                raise
            raise LockedElsewhere from error
        cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
