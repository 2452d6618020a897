"""The engine: Django's own, but one broken connection empties the whole pool (Django loads this module by its name).

After a restart of the server every idle connection is broken. Left alone the pool finds that out one by one, with a
pause that doubles from one to the next: minutes for twenty of them.
"""

from collections import deque
from typing import Any

from django.db.backends.postgresql import base
from psycopg import Connection, OperationalError
from psycopg_pool import ConnectionPool, PoolTimeout

from dashboard.databases import ReleasesErrors

NO_DATABASE = "__no_db__"  # Django's alias of the connection that makes test databases

_pools: dict[str, ConnectionPool[Any]] = base.DatabaseWrapper._connection_pools  # type: ignore[attr-defined]  # no stub

refusals: deque[str] = deque(maxlen=1)  # why this process could not connect last; empty once it could


class PooledConnection(Connection[Any]):
    """A connection of the pool, which tries to connect in threads of its own and tells nobody why it could not."""

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Any:
        """Connect, and note the reason if that fails."""
        try:
            made = super().connect(*args, **kwargs)
        except OperationalError as error:
            refusals.append(reason_of(str(error)))
            raise
        refusals.clear()
        return made


def reason_of(text: str) -> str:
    """Return the first reason in psycopg's text about a connection; of several addresses each has a line of its own."""
    lines = [line.strip() for line in text.splitlines()]
    return next((line.removeprefix("- ") for line in lines if not line.endswith(":")), "")


def check(connection: Connection[Any]) -> None:
    """Ask a connection that is about to be lent whether it lives; when it does not, distrust all idle ones."""
    try:
        ConnectionPool.check_connection(connection)
    except OperationalError:
        pool: Any = connection._pool
        pool.drain()
        raise


class DatabaseWrapper(ReleasesErrors, base.DatabaseWrapper):
    """One thread's connection, lent by the process's pool."""

    @property
    def pool(self) -> ConnectionPool[Any] | None:
        """Return the process's pool, made at its first use; None where none is configured."""
        options = self.settings_dict["OPTIONS"].get("pool")
        if self.alias == NO_DATABASE or not options:
            return None
        if self.alias not in _pools:
            new_pool: ConnectionPool[Any] = ConnectionPool(
                kwargs=self.get_connection_params() | {"autocommit": True},
                open=False,
                configure=self._configure_connection,  # type: ignore[attr-defined]  # no stub
                check=check,
                connection_class=PooledConnection,
                **options,
            )
            _pools.setdefault(self.alias, new_pool)  # of two threads the first one wins
        return _pools[self.alias]

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Take a connection from the pool. Raises OperationalError with the reason if the server refuses them."""
        try:
            return super().get_new_connection(conn_params)
        except PoolTimeout as error:
            if reason := next(iter(refusals), ""):
                raise OperationalError(reason) from error
            raise
