"""The squashed migration makes the tables of the migrations it replaces, and databases with those go on with it."""

import re
from contextlib import contextmanager

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from conversations.core import schema_state

pytestmark = pytest.mark.django_db(transaction=True)

SQUASHED, LAST = "0001_squashed_0023_escalated_requests", "0023_escalated_requests"
NEWEST = "0032_cache_writes"
OURS = "n.nspname='public' AND c.relname LIKE 'conversations%'"
TABLES = "pg_class c JOIN pg_namespace n ON n.oid=c.relnamespace"
IN_POSTGRESQL = (
    f"SELECT c.relname,c.relkind,c.reloptions,c.relpersistence,c.relreplident FROM {TABLES} WHERE {OURS}",
    f"""SELECT c.relname,row_number() OVER (PARTITION BY c.oid ORDER BY a.attnum),a.attname,
    format_type(a.atttypid,a.atttypmod),a.attnotnull,a.attidentity,a.attgenerated,a.attcollation::regcollation::text,
    a.attstorage,pg_get_expr(d.adbin,d.adrelid) FROM {TABLES} JOIN pg_attribute a ON a.attrelid=c.oid
    LEFT JOIN pg_attrdef d ON d.adrelid=c.oid AND d.adnum=a.attnum
    WHERE {OURS} AND a.attnum>0 AND NOT a.attisdropped""",
    f"SELECT c.relname,k.conname,pg_get_constraintdef(k.oid) FROM {TABLES}"
    f" JOIN pg_constraint k ON k.conrelid=c.oid WHERE {OURS}",
    "SELECT tablename,indexname,indexdef FROM pg_indexes WHERE schemaname='public' AND tablename LIKE 'conversations%'",
    f"SELECT c.relname,t.tgname,pg_get_triggerdef(t.oid) FROM {TABLES}"
    f" JOIN pg_trigger t ON t.tgrelid=c.oid WHERE {OURS} AND NOT t.tgisinternal",
    "SELECT p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid=p.pronamespace WHERE n.nspname='public'",
    "SELECT sequencename,data_type::text,start_value,increment_by,cycle FROM pg_sequences WHERE schemaname='public'",
)


def rows(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []


def schema():
    """Return all that the database says of our tables, on PostgreSQL with the order of their columns."""
    if connection.vendor == "postgresql":
        return [sorted(map(repr, rows(sql))) for sql in IN_POSTGRESQL]
    objects = rows("SELECT name,type,tbl_name,sql FROM sqlite_master WHERE name LIKE 'conversations%' OR sql NOTNULL")
    ours = {name: (kind, table, sql) for name, kind, table, sql in objects if table.startswith("conversations")}
    return {name: described(name, *about) for name, about in ours.items()}


def about(pragma):
    """Return what SQLite says, without the numbers in the first column."""
    return [row[1:] for row in rows(pragma)]


def described(name, kind, table, sql):
    """Return an index as it was written; of a table its columns, references, indexes and constraints, all in any order:
    SQLite's old migrations wrote tables anew, and put a reference to the table itself last."""
    if kind != "table" or "VIRTUAL" in sql:
        return kind, table, sql
    columns, references = (sorted(about(f"PRAGMA {what}('{name}')")) for what in ("table_xinfo", "foreign_key_list"))
    indexes = [
        (index, facts, [(column, rest) for _, column, *rest in about(f"PRAGMA index_xinfo('{index}')")])
        for index, *facts in sorted(about(f"PRAGMA index_list('{name}')"))
    ]
    return columns, references, indexes, sorted(re.split(r"[(),]\s*", sql))


@contextmanager
def another_database(tmp_path):
    """Have the connection use a database of its own, empty, until the end."""
    config = connection.settings_dict
    before, name = config["NAME"], "switchboard_of_old_migrations"
    if connection.vendor == "sqlite":
        name = str(tmp_path / f"{name}.sqlite3")
    else:
        rows(f"CREATE DATABASE {name}")
    use(name)
    try:
        yield
    finally:
        use(before)
        if connection.vendor == "postgresql":
            rows(f"DROP DATABASE {name}")


def use(name):
    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()
    connection.settings_dict["NAME"] = name


def recorded():
    """Return the names of our migrations that the database lists."""
    return {name for app, name in MigrationRecorder(connection).applied_migrations() if app == "conversations"}


def has_team():
    """Return whether a run names its team, as it does from migration 0022 on."""
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(cursor, "conversations_run")
    return "team" in {column.name for column in columns}


@pytest.mark.slow
def test_it_makes_the_same_tables_as_the_migrations_it_replaces(tmp_path):
    squashed, listed = schema(), recorded()

    with another_database(tmp_path):
        schema_state.create_as_of("0010_next_step")
        assert not has_team()
        assert recorded().isdisjoint({SQUASHED, "0022_run_team", LAST})
        call_command("migrate", verbosity=0)
        replaced, also_listed = schema(), recorded()

    assert replaced == squashed
    assert listed == also_listed
    assert {SQUASHED, LAST} < listed
    assert len(listed) == 33


def test_a_database_of_the_last_replaced_migration_has_nothing_to_do_but_to_list_the_squashed_one(tmp_path):
    before = schema()
    MigrationRecorder(connection).record_unapplied("conversations", SQUASHED)
    assert not schema_state.is_behind()

    begun: list[bool] = []
    schema_state.bring_up_to_date(lambda: begun.append(SQUASHED in recorded()))
    schema_state.bring_up_to_date(lambda: begun.append(SQUASHED in recorded()))

    assert begun == [False]
    assert SQUASHED in recorded()
    assert schema() == before
    assert not schema_state.is_behind()


def test_a_database_without_the_newest_migration_is_behind():
    MigrationRecorder(connection).record_unapplied("conversations", NEWEST)
    try:
        assert schema_state.is_behind()
    finally:
        MigrationRecorder(connection).record_applied("conversations", NEWEST)


def test_an_empty_database_gets_the_tables_of_the_last_migration(tmp_path):
    with another_database(tmp_path):
        schema_state.create_as_of(LAST)

        assert has_team()
        assert SQUASHED in recorded()
