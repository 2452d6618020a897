"""A conversation that somebody holds on PostgreSQL costs the streams that name it a wait, and no other stream."""

import time
from contextlib import contextmanager

import psycopg
import pytest

from tests.support.live import until
from tests.support.recorders import add, envelope, judge, stored
from tests.support.tiers import variants

pytestmark = pytest.mark.usefixtures("bus")

PROMISED = 2.0  # seconds until another stream's entries are stored


@pytest.fixture
def place(postgres_nursery, redis_server):
    place = postgres_nursery.place(redis_server.url)
    yield place
    postgres_nursery.clear(place)


@contextmanager
def holding(place, key):
    """Lock a conversation's row, as an action of another process does."""
    with psycopg.connect(place.database_url) as other:
        other.execute("SELECT 1 FROM conversations_conversation WHERE key=%s FOR UPDATE", [key])
        yield
        other.rollback()


def positions(place):
    return dict(place.rows("SELECT stream,last_id FROM conversations_redisposition WHERE stream LIKE '%:held'"))


def wait_for(place, key, count):
    """Wait until so much of a conversation is stored; return the seconds that took."""
    began = time.monotonic()
    of_key = "conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id"
    until(
        lambda: place.value(f"SELECT COUNT(*) FROM {of_key} WHERE c.key='{key}'") >= count,
        what=f"{count} events of {key}",
    )
    return time.monotonic() - began


def send(bus, topic, number):
    """Add one message; return the ledger's line of it."""
    key = topic.partition(":")[2]
    add(bus, topic, envelope(key, number), f"b-{number}")
    return key, f"m-{number}"


@pytest.mark.thorough
def test_a_held_conversation_costs_its_own_streams_a_wait_and_no_other(postgres_nursery, place, bus):
    topics = ("chat:held", "stream:held", "chat:free")
    ledger = [send(bus, topic, f"{topic}-0") for topic in topics]
    postgres_nursery.record(place)
    until(lambda: stored(place) == 3)
    before = positions(place)

    took = []
    with holding(place, "held"):
        for number in range(1, 6):
            ledger += [send(bus, topic, f"{topic}-{number}") for topic in topics]
            took.append(wait_for(place, "free", 1 + number))
        assert min(took) < PROMISED  # a busy machine is slow at times only
        assert positions(place) == before
        assert stored(place) == 2 + 6

    wait_for(place, "held", 12)
    for topic in topics[:2]:
        ids = [body["id"] for *_, body in place.events("held") if topic in body["id"]]
        assert ids == [f"m-{topic}-{number}" for number in range(6)]
    judge(postgres_nursery, place, ledger)
    assert positions(place) == {t: bus.xinfo_stream(t)["last-generated-id"] for t in topics[:2]}


@pytest.mark.parametrize("lose", variants(["trim", "delete"]))
def test_a_loss_in_a_held_conversation_is_told_once_it_is_free(postgres_nursery, place, bus, lose):
    send(bus, "stream:held", 0)
    send(bus, "stream:free", 0)
    postgres_nursery.record(place)
    until(lambda: stored(place) == 2)

    with holding(place, "held"):
        if lose == "delete":
            bus.delete("stream:held")
        else:
            bus.eval(
                "for n=1,2 do redis.call('XADD',KEYS[1],'*','payload','{}') end redis.call('XTRIM',KEYS[1],'MAXLEN',0)",
                1, "stream:held",
            )  # fmt: skip
        took, number, end = [], 0, time.monotonic() + 2  # over several looks
        while time.monotonic() < end:
            number += 1
            send(bus, "stream:free", number)
            took.append(wait_for(place, "free", 1 + number))
        assert min(took) < PROMISED
        assert place.gaps() == []

    (gap,) = until(place.gaps, within=60)
    assert (gap["topic"], gap["reason"]) == ("stream:held", "deleted" if lose == "delete" else "trimmed")
    send(bus, "stream:held", 9)
    wait_for(place, "held", 3)
    assert len(place.gaps()) == 1
