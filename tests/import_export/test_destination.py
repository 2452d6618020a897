"""Where a recording is written when several processes use one data directory."""

from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command

from conversations.core import data_dir
from conversations.core.errors import Conflict, Unavailable
from conversations.import_export import destination
from conversations.import_export.destination import LocalDatabase, open_destination
from conversations.models import Conversation
from tests.support.recorded import OWN

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def place(tmp_path, settings):
    """A data directory of the test's own."""
    settings.DATA_DIR = tmp_path
    return tmp_path


@pytest.fixture
def postgresql(monkeypatch):
    """Have imports take any database for PostgreSQL, which many processes write to."""
    monkeypatch.setattr(destination, "connection", SimpleNamespace(vendor="postgresql"))


@pytest.fixture
def no_wait(monkeypatch):
    monkeypatch.setattr("conversations.import_export.server_client.KNOCKS", 1)


def test_a_server_takes_the_directory_while_an_import_writes_to_postgresql(place, postgresql):
    with open_destination("one") as to, data_dir.hold(place):
        assert isinstance(to, LocalDatabase)


def test_imports_write_to_postgresql_beside_each_other(place, postgresql, no_wait):
    with open_destination("one"):
        call_command("import", OWN / "chat.json")

    assert Conversation.objects.filter(key="chat").exists()


def test_an_import_to_postgresql_goes_through_the_server_that_holds_the_directory(place, postgresql, no_wait):
    with (
        data_dir.hold(place),
        pytest.raises(Unavailable, match=r"in use by another Switchboard.*no door\.json"),
        open_destination("one"),
    ):
        pass


def test_a_record_is_not_moved_while_an_import_writes_to_it(place, postgresql):
    with (
        open_destination("one"),
        pytest.raises(CommandError, match=r"^Nothing was copied: `switchboard import` or `play` is writing "),
    ):
        call_command("migrate-database", str(place / "new"))


def test_nothing_is_imported_while_the_record_is_moved(place, postgresql):
    with (
        data_dir.unused(place),
        pytest.raises(Conflict, match="`switchboard migrate-database` is copying the record of"),
        open_destination("one"),
    ):
        pass


def test_an_import_to_sqlite_holds_the_directory_alone(place, monkeypatch):
    monkeypatch.setattr(destination, "connection", SimpleNamespace(vendor="sqlite", cursor=lambda: None))
    monkeypatch.setattr(destination, "be_writer", lambda cursor: None)

    with open_destination("one"), pytest.raises(Unavailable, match="in use by another Switchboard"):
        data_dir.require_unheld(place)
