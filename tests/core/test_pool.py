"""The pool of connections to PostgreSQL, when the server has ended those that nobody uses."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import OperationalError, connection

from dashboard.postgresql import base
from tests.support.databases import IS_POSTGRESQL

pytestmark = pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite has no pool")


@pytest.fixture
def pool(db: None) -> Iterator[Any]:
    """A pool that nobody else uses."""
    another: Any = connection.copy("a test's own")
    another.pool.open()
    yield another.pool
    another.close_pool()


def test_one_broken_connection_is_enough_to_replace_all_that_are_idle(pool: Any) -> None:
    with ExitStack() as lent:
        pids = [lent.enter_context(pool.connection()).info.backend_pid for _ in range(5)]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid, 60000) FROM unnest(%s) AS pid", [pids])

    with pool.connection() as fresh:
        assert fresh.execute("SELECT 1").fetchone() == (1,)

    assert fresh.info.backend_pid not in pids
    assert pool.pop_stats()["connections_lost"] == 1


def test_a_connection_of_the_pool_has_the_settings_of_the_database(db: None) -> None:
    another: Any = connection.copy("of another place")
    another.settings_dict["TIME_ZONE"] = "Asia/Tokyo"
    another.pool.open()
    try:
        with another.pool.connection() as lent:
            assert lent.execute("SHOW timezone").fetchone() == ("Asia/Tokyo",)
    finally:
        another.close_pool()


def test_threads_that_make_the_pool_at_once_share_the_first(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    another: Any = connection.copy("of two threads")
    make, first = base.ConnectionPool, object()

    def overtaken(**options: Any) -> Any:
        monkeypatch.setitem(base._pools, "of two threads", first)
        return make(**options)

    monkeypatch.setattr(base, "ConnectionPool", overtaken)

    assert another.pool is first


def test_a_pool_that_cannot_connect_says_why(db: None) -> None:
    another: Any = connection.copy("of a database that is not there")
    another.settings_dict["NAME"] = "nosuch"
    another.settings_dict["OPTIONS"]["pool"] |= {"timeout": 0.5}
    try:
        with pytest.raises(OperationalError, match=r'^connection .*database "nosuch" does not exist$'):
            another.ensure_connection()
    finally:
        another.close_pool()


def test_a_pool_whose_connections_are_all_lent_says_so(db: None) -> None:
    another: Any = connection.copy("of one connection")
    another.settings_dict["OPTIONS"]["pool"] |= {"timeout": 0.5, "max_size": 1}
    another.pool.open()
    try:
        with another.pool.connection(), pytest.raises(OperationalError, match=r"^couldn't get a connection after"):
            another.ensure_connection()
    finally:
        another.close_pool()
