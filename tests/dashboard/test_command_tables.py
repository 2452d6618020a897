"""Commands create the tables once, whichever comes first, and do not work with tables of an older version."""

import asyncio
import json
import os
import subprocess
import sys
import time

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from conversations.core import schema_state
from conversations.core.node_heartbeat import Heartbeat
from conversations.models import Conversation, Node, User
from conversations.realtime.readiness import Readiness, not_ready
from conversations.realtime.server_runtime import ServerRuntime
from tests.support.live import ROOT
from tests.support.recorded import OWN

AT_ONCE = ("user ida --role viewer", "user bob --role viewer", "token robot --role agent", "migrate")


@pytest.fixture
def older_tables():
    """Have the database list all migrations but the newest."""
    recorder, newest = MigrationRecorder(connection), schema_state.newest()
    recorder.record_unapplied("conversations", newest)
    yield
    recorder.record_applied("conversations", newest)


@pytest.mark.slow
def test_commands_that_start_at_once_in_a_new_data_directory_all_succeed(tmp_path):
    environment = os.environ | {"SWITCHBOARD_DATA_DIR": str(tmp_path / "new")}
    started = [
        subprocess.Popen(
            [sys.executable, "manage.py", *line.split()], cwd=ROOT, env=environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for line in AT_ONCE
    ]  # fmt: skip

    printed = [process.communicate(timeout=120)[0] for process in started]

    assert [process.returncode for process in started] == [0] * len(AT_ONCE), printed


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "line",
    ["verify", "rebuild", "expire --days 1 --reason r", "redact talk 1 --reason r", "export talk", "backup copy.backup",
     "user ida --role viewer", "token robot --role agent", "hold", "policy", "evidence talk --output talk.zip"],
)  # fmt: skip
def test_a_command_refuses_tables_of_an_older_version_and_says_what_to_do(line, older_tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CommandError, match=r"have an older version: run `switchboard migrate`, or start the server, "):
        call_command(*line.split())

    assert not User.objects.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.sqlite("which one process holds")
def test_a_process_that_keeps_running_migrates_the_file_that_it_holds():
    call_command("migrate", "conversations", "0026", verbosity=0)
    assert "conversations_telemetrytrace" not in connection.introspection.table_names()

    schema_state.prepare_service()

    assert not schema_state.is_behind()
    assert "conversations_telemetrytrace" in connection.introspection.table_names()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="a file is migrated by whoever holds it")
@pytest.mark.parametrize("command", ["import", "play"])
def test_a_recording_migrates_no_database_that_others_use(command, older_tables, tmp_path, settings):
    settings.DATA_DIR = tmp_path

    with pytest.raises(CommandError, match="have an older version: run `switchboard migrate`"):
        call_command(command, str(OWN / "chat.json"))

    assert schema_state.is_behind()
    assert not Conversation.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="a file is migrated by whoever holds it")
def test_a_process_that_keeps_running_waits_for_the_tables_of_its_version(older_tables, monkeypatch, caplog):
    waits = []

    def migrate_elsewhere(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            MigrationRecorder(connection).record_applied("conversations", schema_state.newest())

    monkeypatch.setattr(time, "sleep", migrate_elsewhere)

    schema_state.prepare_service()

    assert len(waits) == 2
    assert not schema_state.is_behind()
    assert caplog.messages == ["waiting for migrations: run `switchboard migrate`"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="a file is migrated by whoever holds it")
def test_a_process_that_waits_for_tables_goes_on_after_the_database_was_away(older_tables, monkeypatch):
    waits = []

    def lose_the_connection(seconds):
        waits.append(seconds)
        if len(waits) == 1:
            connection.connection.close()
        else:
            MigrationRecorder(connection).record_applied("conversations", schema_state.newest())

    monkeypatch.setattr(time, "sleep", lose_the_connection)

    schema_state.prepare_service()

    assert len(waits) == 2
    assert not schema_state.is_behind()


NEWER = "9999_of_a_newer_version"


@pytest.fixture
def newer_tables():
    """Have the database list a migration that this version does not have."""
    recorder = MigrationRecorder(connection)
    recorder.record_applied("conversations", NEWER)
    yield
    recorder.record_unapplied("conversations", NEWER)


@pytest.mark.django_db(transaction=True)
@pytest.mark.sqlite("which one process holds")
@pytest.mark.parametrize("prepare", [schema_state.ensure, schema_state.prepare_service, schema_state.bring_up_to_date])
def test_tables_of_a_newer_version_are_refused_with_its_migration(prepare, newer_tables):
    with pytest.raises(CommandError, match=f"used by a newer version, whose migration {NEWER} this version does not"):
        prepare()


@pytest.mark.django_db(transaction=True)
def test_a_process_older_than_its_database_says_so_and_is_ready(newer_tables):
    runtime = ServerRuntime()
    parts = asyncio.run(Readiness(runtime).parts())
    Heartbeat("web", dict).beat()

    assert NEWER in parts["version"]
    assert "version" not in not_ready(parts)
    assert NEWER in json.loads(Node.objects.get().facts)["warnings"][0]


@pytest.mark.django_db(transaction=True)
def test_a_process_as_new_as_its_database_says_nothing_of_versions():
    assert "version" not in asyncio.run(Readiness(ServerRuntime()).parts())
    Heartbeat("web", dict).beat()

    assert json.loads(Node.objects.get().facts)["warnings"] == []
    if connection.vendor == "postgresql":
        schema_state.ensure(), schema_state.prepare_service()
