"""Create and migrate the tables, for every command that may run first."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

LOCK = 0x5377_6974  # PostgreSQL's advisory lock of this product's migrations, any number of its own


def ensure() -> None:
    """Create the tables if there are none; existing ones are migrated by `serve`."""
    if "conversations_user" not in connection.introspection.table_names():
        bring_up_to_date()


def bring_up_to_date() -> None:
    """Migrate, one process at a time; if there is nothing to do, only check (`migrate` takes a second for that)."""
    if is_behind():
        with alone():
            if is_behind():
                call_command("migrate", verbosity=0, interactive=False)


def is_behind() -> bool:
    """Return whether there are unapplied migrations."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock for migrations: several processes of one deployment start at once."""
    if connection.vendor == "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout=0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
            cursor.execute("RESET lock_timeout")
