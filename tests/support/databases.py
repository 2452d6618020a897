"""Which tests run on which database. `make test` runs all on SQLite, then on PostgreSQL every one that asks the
database and starts no process of its own; what starts servers chooses its database itself.

`@pytest.mark.sqlite("why")` is for a test about SQLite's own file.
"""

from __future__ import annotations

import fcntl
import gc
import itertools
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.core.management.color import no_style
from django.core.management.sql import sql_flush
from django.db import connection, transaction

IS_POSTGRESQL = os.environ.get("SWITCHBOARD_TEST_DATABASE") == "postgresql"
# names that start a process
STARTERS = {"Server", "PostgresServer", "RedisServer", "Popen", "chromium", "programs", "bare_nursery"}

TRUNCATE_EVERY = 50  # tests that committed
_emptied = itertools.count(1)

left_out: Counter[str] = Counter()  # by where it is run instead, and why


def leave_out(config: pytest.Config, items: list[pytest.Item], why_not: Callable[[pytest.Item], str]) -> None:
    """Drop the tests for which there is a reason, and count them by it."""
    reasons = [(item, why_not(item)) for item in items]
    left_out.update(reason for _, reason in reasons if reason)
    config.hook.pytest_deselected(items=[item for item, reason in reasons if reason])
    items[:] = [item for item, reason in reasons if not reason]


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On PostgreSQL keep the tests it can tell something about; count the others by the reason."""
    if IS_POSTGRESQL:
        leave_out(config, items, lambda item: (why := _why_not(item)) and f"left to the run on SQLite: {{}} {why}")


def report() -> list[str]:
    """Return which database the tests ran on, and how many were left out, by the reason."""
    database = "PostgreSQL" if IS_POSTGRESQL else "SQLite"
    return [f"database: {database}", *(reason.format(n) for reason, n in sorted(left_out.items()))]


def share_tables(shared: Path) -> None:
    """Have one process of a run migrate its SQLite database, and the others copy the tables from this folder."""
    creation, tables = connection.creation, shared / "tables.sqlite3"
    migrate = creation.create_test_db

    def create_test_db(*arguments: Any, **options: Any) -> str:
        with (shared / "tables.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not tables.exists():
                name: str = migrate(*arguments, **options)
                with connection.cursor() as cursor:
                    cursor.execute("VACUUM INTO %s", [str(tables)])
                return name
        name = str(creation._get_test_db_name())
        shutil.copyfile(tables, name)
        settings.DATABASES[connection.alias]["NAME"] = connection.settings_dict["NAME"] = name
        connection.ensure_connection()
        return name

    creation.create_test_db = create_test_db  # type: ignore[method-assign]


OTHERS = """
SELECT pid, state, now() - state_change, application_name, query FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def ensure_only_session() -> None:
    """On PostgreSQL, which drops no database that another session uses: close the pool, collect what ended threads
    left of their connections until no session is left, and fail with what each of the others did last.
    """
    if not IS_POSTGRESQL:
        gc.collect()
        return
    connection.close()
    connection.close_pool()
    parameters = connection.get_connection_params()
    parameters.pop("pool", None)
    with psycopg.connect(**parameters, autocommit=True) as session:
        deadline = time.monotonic() + 10
        while others := _others(session):
            if time.monotonic() > deadline:
                raise AssertionError("\n".join(map(str, ["sessions that nothing closed:", *others])))
            time.sleep(0.05)


def _others(session: psycopg.Connection[Any]) -> list[Any]:
    """Return the sessions that are left once the connections of threads that have ended by now are collected."""
    gc.collect()
    return session.execute(OTHERS).fetchall()


@contextmanager
def filled(blocker: Any, fill: Callable[[], object]) -> Iterator[None]:
    """Fill the database once for all tests of a module, and empty it at its end; `blocker` is `django_db_blocker`. Its
    tests are inside that transaction, so none of them is `transaction=True`; what each writes is undone as ever.
    """
    around = transaction.atomic()
    with blocker.unblock():
        around.__enter__()
        fill()
    yield
    with blocker.unblock():
        transaction.set_rollback(True)
        around.__exit__(None, None, None)


def empty() -> None:
    """Empty the database after a test that committed, where Django's `flush` would ask what tables there are, delete
    from all of them and send signals. PostgreSQL it truncates, which makes a new file for each table and each index;
    this deletes in one round trip, and truncates the dead rows that are left of it now and then.
    """
    if not IS_POSTGRESQL:
        _empty_sqlite()
        return
    if next(_emptied) % TRUNCATE_EVERY == 0:
        connection.ops.execute_sql_flush(sql_flush(no_style(), connection, reset_sequences=False))
        return
    with connection.cursor() as cursor:
        cursor.execute(_deletions())


def _empty_sqlite() -> None:
    """Delete from the few tables that have rows; references are checked once all are gone."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'EXISTS(SELECT 1 FROM {table})' for table in _tables())}")
        for table, has_rows in zip(_tables(), cursor.fetchone(), strict=True):
            if has_rows:
                cursor.execute(f"DELETE FROM {table}")


@cache
def _tables() -> list[str]:
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return [connection.ops.quote_name(name) for name in names]


@cache
def _deletions() -> str:
    """Return statements that wait, as TRUNCATE does, for whoever still uses a table, and look for no references."""
    begin = ["SET LOCAL session_replication_role = replica", f"LOCK TABLE {', '.join(_tables())}"]
    return "; ".join([*begin, *(f"DELETE FROM {table}" for table in _tables())])


def _why_not(item: pytest.Item) -> str:
    if mark := item.get_closest_marker("sqlite"):
        return f"about SQLite's file: {mark.args[0]}"
    if starts_processes(item):
        return "that start processes of their own"
    if item.get_closest_marker("django_db") or {"db", "transactional_db"} & set(getattr(item, "fixturenames", ())):
        return ""
    return "that ask no database"


def starts_processes(item: Any) -> bool:
    """Return whether a test, a fixture it uses, or a function of its module that these call starts a process."""
    functions = [getattr(item, "function", None)]
    fixtures = getattr(item, "_fixtureinfo", None)
    for definitions in (fixtures.name2fixturedefs if fixtures else {}).values():
        functions += [definition.func for definition in definitions]
    seen: set[Callable[..., Any]] = set()
    while functions:
        function = functions.pop()
        if not isinstance(function, FunctionType) or function in seen:
            continue
        seen.add(function)
        names = _names(function.__code__)
        if names & STARTERS or "chromium" in function.__code__.co_varnames[: function.__code__.co_argcount]:
            return True
        ours = {name: function.__globals__.get(name) for name in names}
        functions += [f for f in ours.values() if getattr(f, "__module__", "").startswith("tests")]
    return False


def _names(code: Any) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if hasattr(constant, "co_names"):
            names |= _names(constant)
    return names
