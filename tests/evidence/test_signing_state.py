"""What `/readyz` tells of the signing of the record: an old checkpoint is news if something was written since."""

import re

import pytest
from django.db.models import F

from conversations.core.outbound_address import NONE
from conversations.core.status import OK
from conversations.evidence import checkpointer, checkpoints
from conversations.models import Checkpoint
from conversations.realtime.readiness import HINTS, not_ready
from tests.evidence.signed_place import say
from tests.support.live import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


def test_readiness_tells_of_events_that_have_waited_long_to_be_signed(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointer, "EVERY", 0.01)
    monkeypatch.setattr(checkpointer, "STALLED", 0.3)
    thread = checkpointer.Checkpointer(tmp_path / "keys" / "k.json", "example.com/evidence", [], [], NONE)
    say("a", "hello")
    thread.start()
    try:
        until(checkpoints.newest, what="the first checkpoint")
        with monkeypatch.context() as broken:
            broken.setattr(checkpoints, "make", lambda signer: 1 / 0)
            say("a", "hello")
            part = until(
                lambda: thread.state.startswith("the newest") and thread.state, what="the age of the checkpoint"
            )
        until(lambda: thread.state == OK, what="the checkpoints to go on")
    finally:
        thread.close()

    assert re.fullmatch(
        r"the newest checkpoint is \d+ s old, and what was written since is not signed: see the log", part
    )
    assert not_ready({"signing": part}) == []
    assert "signing" in HINTS


def test_an_old_checkpoint_of_an_idle_record_is_no_news(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointer, "STALLED", 0.3)
    thread = checkpointer.Checkpointer(tmp_path / "keys" / "k.json", "example.com/evidence", [], [], NONE)
    say("a", "hello")
    thread._round()
    Checkpoint.objects.update(at=F("at") - 3_600_000_000)
    until(lambda: thread.state != OK, what="the last look to be long ago")

    thread._round()

    assert thread.state == OK


def test_a_checkpoint_of_a_clock_that_was_ahead_is_not_recent(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpointer, "STALLED", 0.3)
    thread = checkpointer.Checkpointer(tmp_path / "keys" / "k.json", "example.com/evidence", [], [], NONE)
    say("a", "hello")
    thread._round()
    Checkpoint.objects.update(at=F("at") + 3_600_000_000)
    say("a", "hello")
    monkeypatch.setattr(checkpoints, "make", lambda signer: 1 / 0)
    until(lambda: thread.state != OK, what="the last look to be long ago")

    thread._round()

    assert thread.state != OK
