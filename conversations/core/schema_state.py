"""Create and migrate the tables, for every command that may run first."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pkgutil import iter_modules

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MIGRATIONS_MODULE_NAME, MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from conversations.core import data_dir
from conversations.core.db_threads import release_connection
from conversations.core.errors import Unavailable

logger = logging.getLogger(__name__)

WAITING = "waiting for migrations: run `switchboard migrate`"
POLL_S = 0.5  # seconds between looks whether another process has migrated the tables
APP = "conversations"  # the app of the record's tables
LOCK = 0x5377_6974  # PostgreSQL's advisory lock of this product's migrations, any number of its own


def ensure() -> None:
    """Create the tables if there are none. Raises CommandError if they are of an older version of this program, or on
    SQLite of a newer one."""
    if not _has_tables():
        bring_up_to_date()
        return
    _require_known()
    if not _has_newest():
        with migration_lock():  # the process that creates or migrates them comes first
            if is_behind():
                raise CommandError(
                    "the database's tables have an older version: run `switchboard migrate`, or start the server, first"
                )


def prepare_service() -> None:
    """Create the tables for a process that keeps running. Older ones are migrated on SQLite, which it holds alone; on
    PostgreSQL it waits for `switchboard migrate`. Raises CommandError for SQLite's tables of a newer version."""
    if connection.vendor == "sqlite" or not _has_tables():
        bring_up_to_date()
    elif is_behind():
        logger.warning("%s", WAITING)
        while _is_still_behind():
            time.sleep(POLL_S)


def _is_still_behind() -> bool:
    """Return whether another process has not migrated the tables yet; a database that is away may come back."""
    try:
        return is_behind()
    except (DatabaseError, Unavailable):
        release_connection()  # it is broken: the next look takes another
        return True


def bring_up_to_date(begin: Callable[[], object] = lambda: None) -> None:
    """Migrate, one process at a time; if there is nothing to do, only check (`migrate` takes a second for that).
    `begin` is called before a migration, which may take a minute. Raises CommandError for SQLite's tables of a newer
    version."""
    _require_known()
    if not _has_every_record():
        begin()
        with migration_lock():
            if not _has_every_record():
                migrate()


def migrate() -> None:
    """Run Django's `migrate`. The caller holds `migration_lock()`, which our command of that name takes itself."""
    from django.core.management.commands.migrate import Command  # 0.1 s, which no start with up-to-date tables takes

    call_command(Command(), verbosity=0, interactive=False)


def newer_migration() -> str:
    """Return the last migration of the record that only a newer version has, which may rely on what this one does not
    write; empty if this version knows all that are applied."""
    applied = {name for app, name in MigrationRecorder(connection).applied_migrations() if app == APP}
    unknown = applied - set(_migrations_of(apps.get_app_config(APP)))
    return max(unknown - _replaced_migrations(), default="") if unknown else ""


def newer_warning() -> str:
    """Return what to tell an operator about a process that is older than its database; empty if it is not."""
    newer = newer_migration()
    return newer and f"A newer version has migrated the database ({newer}): replace this process by that version"


def _require_known() -> None:
    """Raise CommandError for tables that a newer version made on SQLite, which one process uses at a time. On
    PostgreSQL, processes of two versions run beside each other during an upgrade."""
    if connection.vendor == "sqlite" and (newer := newer_migration()):
        raise CommandError(
            f"the database was used by a newer version, whose migration {newer} this version does not know: use that "
            "version, or restore a backup from before the upgrade into a new data directory"
        )


def _has_tables() -> bool:
    return "conversations_user" in connection.introspection.table_names()


def _has_newest() -> bool:
    """Return whether the database lists the record's last migration: a fifth of the time of `_has_every_record`."""
    with connection.cursor() as cursor:
        newest_file = max(_migrations_of(apps.get_app_config(APP)))
        cursor.execute("SELECT 1 FROM django_migrations WHERE app=%s AND name=%s", [APP, newest_file])
        return cursor.fetchone() is not None


def is_behind() -> bool:
    """Return whether there are unapplied migrations."""
    if _has_every_record():
        return False
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _has_every_record() -> bool:
    """Return whether the database lists every migration that this version has a file of; imports none of them. A
    squashed migration is not listed until `migrate` runs, even if all that it replaces are applied."""
    applied = MigrationRecorder(connection).applied_migrations()
    return all((app.label, name) in applied for app in apps.get_app_configs() for name in _migrations_of(app))


@cache
def _replaced_migrations() -> frozenset[str]:
    """List the record's migrations that squashed ones replace; their files may be gone."""
    migrations = MigrationLoader(None).disk_migrations.values()
    return frozenset(name for migration in migrations for app, name in migration.replaces if app == APP)


@cache  # an upgrade replaces the files under a running process
def _migrations_of(app: AppConfig) -> tuple[str, ...]:
    """List the names of an app's migrations, as Django's loader finds them."""
    spec = find_spec(f"{app.name}.{MIGRATIONS_MODULE_NAME}")
    modules = iter_modules(spec.submodule_search_locations) if spec else ()
    return tuple(module.name for module in modules if not module.ispkg and module.name[0] not in "_~")


def newest() -> str:
    """Return the name of the last migration of the record that this version has. A squashed migration counts as the
    last of those it replaces, since it leaves the same tables."""
    loader = MigrationLoader(None)
    (key,) = loader.graph.leaf_nodes(APP)
    replaced = loader.disk_migrations[key].replaces
    return str((replaced[-1] if replaced else key)[1])


def is_known(migration: str) -> bool:
    """Return whether this version has this migration of the record, replaced or not."""
    return (APP, migration) in MigrationLoader(None).disk_migrations


def create_as_of(migration: str) -> None:
    """Bring the record's tables to what they were after a migration, a replaced one, too."""
    executor, target = MigrationExecutor(connection), (APP, migration)
    loader = executor.loader
    if target not in loader.graph.nodes:
        same = [key for key, squashed in loader.replacements.items() if squashed.replaces[-1] == target]
        if same:
            (target,) = same
        else:
            loader.replace_migrations = False  # type: ignore[attr-defined]  # django-stubs do not know it
            loader.build_graph()
    executor.migrate([target])


@contextmanager
def migration_lock() -> Iterator[None]:
    """Hold the lock for migrations: several processes of one deployment, or of one data directory, start at once."""
    if connection.vendor == "sqlite":
        with data_dir.file_lock(settings.DATA_DIR, "migrate.lock"):
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
