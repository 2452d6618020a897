"""Which posts the relay sends: those since Redis was first configured for this record (§3.2, "at least once").

Earlier posts were meant for nobody on Redis: an agent that starts there must not act on old messages. Every process
with Redis calls `ensure_start` at its start; the first call fixes the limit for good.
"""

from django.db import IntegrityError
from django.db.models import Max, QuerySet

from conversations.core.write_transaction import write_transaction
from conversations.models import Meta, Post, RedisPosition

NAME = "relayed_after"


def ensure_start() -> int:
    """Set the limit if it is not set; return the id of the last post that is not sent."""
    if (drawn := _stored_start()) is not None:
        return drawn
    try:
        with write_transaction():
            newest = 0 if RedisPosition.objects.exists() else Post.objects.aggregate(id=Max("id"))["id"] or 0
            Meta.objects.create(name=NAME, value=str(newest))
    except IntegrityError:  # somebody was first
        return ensure_start()
    return newest


def unsent() -> QuerySet[Post]:
    """Return the posts that wait for the relay; none as long as there is no limit."""
    drawn = _stored_start()
    return Post.objects.none() if drawn is None else Post.objects.filter(sent_at__isnull=True, id__gt=drawn)


def _stored_start() -> int | None:
    value = Meta.objects.filter(name=NAME).values_list("value", flat=True).first()
    return None if value is None else int(value)
