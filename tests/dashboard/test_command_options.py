"""Commands refuse options that they would ignore, and advise what helps."""

import os
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from conversations.core import data_dir, schema_state
from conversations.core.errors import Unavailable
from tests.support.live import ROOT

pytestmark = pytest.mark.django_db


def test_a_reason_is_refused_where_the_policy_is_printed():
    with pytest.raises(CommandError, match=r"^--reason needs FILE$"):
        call_command("policy", "--reason", "tidied")


def test_an_event_feed_begins_at_one_place():
    with pytest.raises(CommandError, match="not allowed with argument --from-start"):
        call_command("tail", "talk", "--from-start", "--after", "7")


def test_a_server_that_is_named_without_a_token_is_not_replaced_by_the_one_here(monkeypatch):
    monkeypatch.setenv("SWITCHBOARD_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("SWITCHBOARD_TOKEN", raising=False)

    with pytest.raises(CommandError, match=r"^talk cannot be followed: SWITCHBOARD_TOKEN is not set$"):
        call_command("tail", "talk")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "printed"),
    [(["export", "nobody"], "there is no conversation 'nobody'"), (["reindex"], "Indexed 0 events.")],
)
def test_a_new_data_directory_has_an_empty_record(arguments, printed, tmp_path):
    command = [sys.executable, "manage.py", *arguments]
    environment = os.environ | {"SWITCHBOARD_DATA_DIR": str(tmp_path / "new")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert printed in done.stdout + done.stderr


HOLDERS = {
    "reindex": (["reindex"], "stop it first"),
    "restore": (["restore", "record.backup"], "stop it first"),
    "runagents": (["runagents"], "SQLite allows one process only"),
    "record": (["record"], "SQLite allows one process only"),
}


@pytest.fixture
def place(tmp_path, settings):
    """A data directory of the test's own, with a Redis that `record` asks for."""
    settings.DATA_DIR = tmp_path
    settings.CONFIG = settings.CONFIG.model_copy(update={"redis_url": "redis://127.0.0.1:9/0", "teams": ""})
    return tmp_path


@pytest.mark.parametrize("name", HOLDERS)
def test_who_finds_the_data_directory_held_is_told_what_to_stop(name, place):
    arguments, advice = HOLDERS[name]

    with data_dir.hold(place), pytest.raises(CommandError, match=f"in use by another Switchboard.*{advice}"):
        call_command(*arguments)


@pytest.mark.parametrize("name", HOLDERS)
def test_who_finds_the_database_unavailable_is_told_to_stop_nothing(name, place, monkeypatch):
    arguments, _ = HOLDERS[name]

    def unavailable(*args, **options):
        raise Unavailable("the database cannot write right now. Try again")

    for preparation in ("ensure", "prepare_service"):
        monkeypatch.setattr(schema_state, preparation, unavailable)
    monkeypatch.setattr("conversations.management.commands.restore.restore", unavailable)

    with pytest.raises(CommandError) as refused:
        call_command(*arguments)

    assert str(refused.value) == "the database cannot write right now. Try again"


def test_following_a_file_once_that_is_not_there_is_no_success(tmp_path):
    with pytest.raises(CommandError, match=r"^there is no file .*session\.jsonl$"):
        call_command("follow", "--once", str(tmp_path / "session.jsonl"))


@pytest.mark.parametrize("content", ["", '{"some": "line"}\n'])
def test_following_a_file_once_that_names_no_session_is_no_success(content, tmp_path, monkeypatch):
    monkeypatch.setenv("SWITCHBOARD_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("SWITCHBOARD_TOKEN", "sb_token")
    file = tmp_path / "session.jsonl"
    file.write_text(content)

    with pytest.raises(CommandError, match=r"^session\.jsonl was not followed: it names no session$"):
        call_command("follow", "--once", str(file))
