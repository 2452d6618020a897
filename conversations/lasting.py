"""Background loops that outlive an error: one bad round is logged, the next one comes."""

import logging
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from django.db import connection

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


async def repeat(rounds: Callable[[], Awaitable[None]], *, what: str) -> None:
    """Do one round after the other, for ever; each one waits for its own time. An error costs its round."""
    while True:
        try:
            await rounds()
        except Exception:
            logger.exception("%s failed once", what)


def with_connection(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Ask the database in a thread that lives on: a connection that broke is not kept for the next question."""
    try:
        return work(*args, **kwargs)
    finally:
        connection.close_if_unusable_or_obsolete()
