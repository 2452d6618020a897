"""Threads that work with the database: after each piece of work their connection goes back where it came from.

On PostgreSQL that is the process's pool; SQLite's stays with its thread. Either way one that broke is dropped, so the
next piece of work finds a good one.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

from conversations.errors import Unavailable

P = ParamSpec("P")
T = TypeVar("T")

# Every thread of a process that may ask the database, by what it is for. On PostgreSQL the pool of connections is as
# large as all of them together (`dashboard.databases`): none waits for another's.
ASKING = {
    "writer": 1,
    "reader": 4,
    "drawer": 1,
    "fleet": 1,
    "approvals": 1,
    "watch": 1,
    "readiness": 1,
    "recorder": 1,
    "indexer": 1,
    "pages": 8,
    "errand": 8,
    "topics": 4,
    "publish": 1,
    "import": 1,
    "bearers": 1,
    "bearers-notes": 1,
    "runs": 4,
    "tools": 4,
    "posts": 1,  # a worker's
    "asking": 4,  # the responses door
    "responses": 4,
}


class DatabaseThreads(ThreadPoolExecutor):
    """A pool of such threads, as many as `ASKING` says. What the database cannot do now comes out as `Unavailable`."""

    def __init__(self, name: str) -> None:
        super().__init__(ASKING[name], thread_name_prefix=name)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Queue one piece of work."""
        return super().submit(partial(lent, fn, *args, **kwargs))


def lent(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do it with this thread's connection, then give that back. Raises Unavailable for a database that is not there."""
    try:
        return work(*args, **kwargs)
    except (OperationalError, InterfaceError) as error:
        raise unavailable(error) from error
    finally:
        give_back()


def give_back() -> None:
    """End what this thread has with the database for now; a no-op inside a transaction."""
    connection.close_if_unusable_or_obsolete()


def unavailable(error: Exception, *, what: str = "answer") -> Unavailable:
    """Say it to a caller: the first line only, servers add advice about themselves."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return Unavailable(f"the database cannot {what} now: {reason[:200]}. Try again")


def sqlstate(error: BaseException) -> str:
    """Answer PostgreSQL's five characters for what went wrong; empty where there are none."""
    return str(getattr(error.__cause__, "sqlstate", None) or "")
