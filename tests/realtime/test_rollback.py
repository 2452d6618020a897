"""What a data directory remembers shows that a record went back, though it has grown since; and never else."""

import pytest
from django.db import connection

from conversations.events import epoch
from conversations.events.epoch import HighWater
from conversations.models import Conversation, Event, Meta
from conversations.realtime.rollback_watch import RollbackWatch
from tests.support.searching import say

pytestmark = pytest.mark.django_db


def go_back(key, seq):
    """Put a conversation back to an older copy."""
    Event.objects.filter(conversation__key=key, seq__gt=seq).delete()
    last = Event.objects.get(conversation__key=key, seq=seq)
    Conversation.objects.filter(key=key).update(head_seq=seq, head_hash=last.hash)


def test_a_record_that_went_back_and_grew_since_begins_a_new_epoch(tmp_path):
    say("c", "one", "two", "three")
    before = epoch.current()
    HighWater(tmp_path).check()

    go_back("c", 1)
    say("c", "other", "other", "other", "other", "other")

    assert HighWater(tmp_path).check()
    assert epoch.current() != before
    assert not HighWater(tmp_path).check()


def test_what_is_remembered_does_not_shrink_within_an_epoch(tmp_path, monkeypatch):
    """As PostgreSQL's newest row does when an import is discarded."""
    say("c", "one", "two", "three")
    water = HighWater(tmp_path)
    water.check()
    before = (tmp_path / "high-water").read_text()
    monkeypatch.setattr(epoch, "_newest_committed", lambda: 1)

    water.write()

    assert (tmp_path / "high-water").read_text() == before


def test_an_epoch_that_was_over_is_not_gone_on_with(tmp_path):
    say("c", "one")
    first = epoch.current()
    HighWater(tmp_path).check()
    epoch.change(first)
    HighWater(tmp_path).check()

    Meta.objects.filter(name="epoch").update(value=first)

    assert HighWater(tmp_path).check()
    assert epoch.current() != first


def test_of_several_that_notice_one_changes_the_epoch(tmp_path):
    watches = [RollbackWatch(tmp_path / name) for name in ("a", "b", "b")]
    say("c", "one", "two")
    for watch in watches:
        watch.look()
    before = epoch.current()
    go_back("c", 1)

    seen = []
    for watch in watches:
        watch.look()
        seen.append(epoch.current())

    assert before not in seen
    assert len(set(seen)) == 1


def test_a_record_that_goes_on_stays_in_its_epoch(tmp_path):
    watches, before = [RollbackWatch(tmp_path / name) for name in ("a", "b")], epoch.current()
    for n in range(4):
        say(f"c{n % 2}", str(n))
        watches[n % 2].look()  # the other one lags

    for watch in watches:
        watch.look(), watch.write()
    assert epoch.current() == before


@pytest.mark.django_db(transaction=True)
def test_nothing_is_asked_while_nothing_is_written(tmp_path, django_assert_num_queries):
    watch = RollbackWatch(tmp_path)
    say("c", "one", "two", "three")
    watch.look()
    watch.look()  # the first one wrote its own files
    before = epoch.current()

    if connection.vendor == "sqlite":
        with django_assert_num_queries(0):
            watch.look()
    go_back("c", 1)
    watch.look()

    assert epoch.current() != before
