"""When a person was last here, and since when they have things to catch up on. Called by pages.

A person counts as away if they loaded no page for ten minutes; a visible page sends requests more often.
"""

import logging
import time

from django.db import DatabaseError, connection

from conversations.core.errors import SwitchboardError
from conversations.core.write_transaction import write_transaction
from conversations.models import Visit

logger = logging.getLogger(__name__)

AWAY_US = 10 * 60 * 1_000_000
NOTED_EVERY_US = 60 * 1_000_000

PATIENCE = 0.05  # seconds for what else is written: a page does not wait for the note

_LAST = "SELECT last_at,left_at FROM conversations_visit WHERE user_id=%s"


def note(user_id: int) -> int:
    """Note that a person is here, at most once a minute; return since when they have things to catch up on, µs UTC, 0
    if nothing. If the database cannot be written now, the page is still sent, and the next one notes it."""
    now, left_at = time.time_ns() // 1000, 0
    try:
        with connection.cursor() as cursor:
            cursor.execute(_LAST, [user_id])
            last_at, left_at = cursor.fetchone() or (0, 0)
        if now - last_at >= NOTED_EVERY_US:
            was_away = last_at and now - last_at >= AWAY_US
            left_at = last_at if was_away else left_at
            with write_transaction(within=PATIENCE):
                _write(user_id, last_at, now, {"left_at": left_at} if was_away else {})
    except (DatabaseError, SwitchboardError) as error:
        logger.warning("the visit of person %s could not be recorded: %s", user_id, error)
    return left_at


def _write(user_id: int, last_at: int, now: int, left: dict[str, int]) -> None:
    """Store a visit; of two pages at once the first counts. Without `left` a concurrent dismissal is kept."""
    if last_at:
        Visit.objects.filter(user_id=user_id, last_at=last_at).update(last_at=now, **left)
    else:
        Visit.objects.bulk_create([Visit(user_id=user_id, last_at=now)], ignore_conflicts=True)


def catch_up(user_id: int) -> None:
    """Note that a person has seen what happened since they left."""
    with write_transaction():
        Visit.objects.filter(user_id=user_id).update(left_at=0)


def has_dismissed_steps(user_id: int) -> bool:
    """Return whether a person dismissed the first steps."""
    return Visit.objects.filter(user_id=user_id, has_dismissed_steps=True).exists()


def dismiss_steps(user_id: int) -> None:
    """Note that a person dismissed the first steps."""
    with write_transaction():
        Visit.objects.update_or_create(
            user_id=user_id,
            defaults={"has_dismissed_steps": True},
            create_defaults={"has_dismissed_steps": True, "last_at": time.time_ns() // 1000},
        )
