"""Which posts the relay carries: those since Redis was first set for this record (§3.2, "at least once").

What was posted before was never meant for anybody on Redis: an agent that wakes up there must not act on old words.
Every process that is given Redis calls `begin` when it starts; the first one draws the line, for good.
"""

from django.db import IntegrityError
from django.db.models import Max, QuerySet

from conversations.core.write_transaction import write_transaction
from conversations.models import Meta, Post, RedisPosition

NAME = "relayed_after"


def ensure_start() -> int:
    """Draw the line if nobody has; answer the id of the last post that stays here."""
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
    """Keep the posts that wait for the relay; none as long as there is no line."""
    drawn = _stored_start()
    return Post.objects.none() if drawn is None else Post.objects.filter(sent_at__isnull=True, id__gt=drawn)


def _stored_start() -> int | None:
    value = Meta.objects.filter(name=NAME).values_list("value", flat=True).first()
    return None if value is None else int(value)
