"""Threads that work with the database and return their connection after each piece of work.

On PostgreSQL it returns to the process's pool; on SQLite it stays with the thread. A broken connection is dropped, so
the next piece of work gets a new one.
"""

import asyncio
import sqlite3
import traceback
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import Error, InterfaceError, InternalError, OperationalError, connection

from conversations.core.errors import Unavailable
from conversations.core.secret_masking import unaddressed

P = ParamSpec("P")
T = TypeVar("T")
RunInThread = Callable[..., Awaitable[Any]]  # how an event loop has work done in a database thread, such as `run` below

# Every thread of a process that may ask the database, by what it is for. On PostgreSQL the pool of connections is as
# large as all of them together (`dashboard.databases`): none waits for another's.
POOL_SIZE = {
    "writer": 4,  # three by conversation, one for what waits for a lock; SQLite has one and one
    "reader": 4,
    "renderer": 1,
    "fleet": 1,
    "approvals": 1,
    "audit": 1,
    "watch": 1,
    "readiness": 1,
    "recorder": 1,
    "indexer": 1,
    "alerts": 1,
    "retention": 1,
    "checkpoints": 1,
    "record-check": 1,
    "export": 1,
    "pages": 8,
    "errand": 8,
    "topics": 4,
    "publish": 1,
    "hooks": 4,
    "telemetry": 1,
    "telemetry-notes": 1,
    "questions": 2,
    "feed": 2,
    "import": 1,
    "bearers": 1,
    "bearers-notes": 1,
    "runs": 4,
    "leases": 1,
    "tools": 4,
    "posts": 1,  # a worker's
    "asking": 4,  # the responses API
    "responses": 4,
}

damage: deque[str] = deque(maxlen=1)  # what this process met last; a restart forgets it
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
READ_ONLY = "25006"  # PostgreSQL's: a standby, or one that was made read-only
DAMAGE_OF_POSTGRESQL = ("XX001", "XX002")  # of data, of an index


class DatabaseThreads(ThreadPoolExecutor):
    """A pool of `POOL_SIZE` such threads, or of `threads` if few of them ask the database at a time. Errors of an
    unavailable database come out as Unavailable."""

    def __init__(self, name: str, *, threads: int = 0) -> None:
        super().__init__(threads or POOL_SIZE[name], thread_name_prefix=name)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Queue one piece of work."""
        return super().submit(partial(with_connection, fn, *args, **kwargs))

    def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Queue one piece of work from an event loop, which can await it."""
        return asyncio.wrap_future(self.submit(work, *args, **kwargs))


def with_connection(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work with this thread's connection, then return the connection. Raises Unavailable if the database cannot be
    reached."""
    try:
        return without_frames(work, *args, **kwargs)
    except Error as error:
        if not is_unavailable(error):
            raise
        raise unavailable(error) from error
    finally:
        release_connection()


def without_frames(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work; a raised error carries no local variables: freeing a decoded body of 1 MiB would block the loop for 10
    ms."""
    try:
        return work(*args, **kwargs)
    except BaseException as error:
        cause: BaseException | None = error
        while cause is not None:
            traceback.clear_frames(cause.__traceback__)
            cause = cause.__context__
        raise


def resolve(answers: Iterable[tuple[asyncio.Future[Any] | Future[Any], Any]]) -> None:
    """Give futures their results; an exception is raised where one awaits it."""
    for done, answer in answers:
        if done.done():  # given up
            continue
        if isinstance(answer, Exception):
            done.set_exception(answer)
        else:
            done.set_result(answer)


def release_connection() -> None:
    """Return this thread's connection for now; does nothing inside a transaction."""
    connection.close_if_unusable_or_obsolete()


def is_unavailable(error: BaseException | None) -> bool:
    """Return whether an error is about the database as a whole, not a statement or a value."""
    return isinstance(error, OperationalError | InterfaceError) or is_read_only(error) or is_damage(error)


def is_read_only(error: BaseException | None) -> bool:
    """Return whether PostgreSQL accepts only reads, which Django reports as an internal error."""
    return isinstance(error, InternalError) and sqlstate(error) == READ_ONLY


def is_damage(error: BaseException | None) -> bool:
    """Return whether the database met a damaged page, which no driver reports as an operational error."""
    if not isinstance(error, Error):
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return (code is not None and code & 0xFF in DAMAGE) or sqlstate(error) in DAMAGE_OF_POSTGRESQL


def unavailable(error: Exception, *, what: str = "answer") -> Unavailable:
    """Return an error for the caller, who may not be signed in: the first line only, since servers append advice about
    themselves, and no addresses, which the log has."""
    reason = unaddressed((str(error).splitlines() or [type(error).__name__])[0])
    if is_damage(error):
        damage.append(reason[:200])
        return Unavailable(f"the database is damaged: {reason[:200]}. Ask an operator to run `switchboard verify`")
    return Unavailable(f"the database cannot {what} right now: {reason[:200]}. Try again")


def sqlstate(error: BaseException) -> str:
    """Return PostgreSQL's five-character error code; empty without one."""
    return str(getattr(error.__cause__, "sqlstate", None) or "")
