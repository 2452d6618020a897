"""Staging one more conversation of a file costs the same, however many of it are staged already."""

from io import StringIO

import pytest
from django.core.management import call_command

from conversations.core.errors import Conflict
from conversations.events import log
from conversations.models import Conversation, Event
from conversations.transport import topic_reads
from tests.support.searching import say

pytestmark = pytest.mark.django_db


class Key(str):
    """A conversation's id that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Key.compared += 1
        return str.__eq__(self, other)


class Keys(dict):
    """A mapping of staged keys that counts how many of them are walked through."""

    walked = 0

    def __iter__(self):
        self.walked += len(self)
        return super().__iter__()

    def keys(self):
        self.walked += len(self)
        return super().keys()


def test_a_key_is_not_compared_with_all_that_are_staged(monkeypatch):
    monkeypatch.setattr(Key, "compared", 0)
    batch = log.StagedBatch()

    for n in range(300):
        batch.stage(Key(f"c{n}"))

    assert Key.compared < 3_000  # each with each would be 44,850


def test_an_append_does_not_walk_through_all_that_are_staged():
    batch = log.StagedBatch()
    staged = [batch.stage(f"c{n}") for n in range(50)]
    keys = Keys(batch.chained_as)

    say(staged[0], "first", chained_as=keys)
    batch.chained_as = {staged[0]: "c0"}
    batch.publish()

    assert keys.walked == 0
    assert Conversation.objects.visible().get(key="c0").head_seq == 1


def test_a_key_is_staged_once():
    batch = log.StagedBatch()
    batch.stage("c")

    with pytest.raises(Conflict):
        batch.stage("c")


def test_verify_names_how_many_conversations_are_staged():
    output = StringIO()
    call_command("verify", stdout=output)
    assert "staged" not in output.getvalue()
    batch = log.StagedBatch()
    for key in ("a", "b"):
        say(batch.stage(key), "first", chained_as=batch.chained_as)

    call_command("verify", stdout=output)

    assert "have staged 2 conversations with 2 events." in output.getvalue()


def test_a_removal_that_breaks_off_leaves_no_message_without_its_text(monkeypatch):
    say("c", "first")
    monkeypatch.setattr(Conversation, "delete", None)

    with pytest.raises(TypeError):
        log.remove(Conversation.objects.get(key="c"))

    assert not Event.objects.exists()
    assert topic_reads.after("chat:c", 0, 10) == []
