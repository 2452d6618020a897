"""What `migrate-database` says of a place that it cannot write to; nothing is copied then."""

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def data_dir(tmp_path, settings):
    """A data directory of the test's own."""
    settings.DATA_DIR = tmp_path / "data"
    settings.DATA_DIR.mkdir()


@pytest.mark.parametrize("target", ["", "  "])
def test_a_target_must_be_named(target):
    with pytest.raises(CommandError, match="TARGET must be postgresql://… or a directory"):
        call_command("migrate-database", target)


def test_a_database_that_is_not_there_is_named_without_a_traceback():
    with pytest.raises(CommandError) as refused:
        call_command("migrate-database", "postgresql://nobody@127.0.0.1:1/record")

    assert str(refused.value).startswith("The database 127.0.0.1/record cannot be used: ")
    assert "Traceback" not in str(refused.value)
