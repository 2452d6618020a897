"""Commands refuse options that they would ignore."""

import pytest
from django.core.management import CommandError, call_command

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
