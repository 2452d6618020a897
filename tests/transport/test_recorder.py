"""The recorder on a real Redis: what it finds, how it files it, and that it takes nothing from anybody."""

import json
import threading
import time

import pytest

from conversations.models import Node
from conversations.transport.recorder.service import EmbeddedRecorder, RecorderService
from tests.support.live import free_port, until
from tests.support.recorders import add, envelope, stored


def wait_for(place, count, within=60):
    until(lambda: stored(place) >= count, within=within, what=f"{count} events, there are {stored(place)}")


@pytest.mark.slow
def test_a_stream_is_recorded_within_a_second_of_its_first_event(nursery, place, bus):
    add(bus, "chat:first", envelope("first", 0))
    nursery.record(place)
    wait_for(place, 1)
    waits = []

    for number in range(1, 6):
        began = time.monotonic()
        add(bus, f"stream:new-{number}", {"event": "token", "text": "t", "index": 0})
        wait_for(place, 1 + number)
        waits.append(time.monotonic() - began)
        time.sleep(0.13)  # another phase of the scan

    assert max(waits) <= 1.0, waits


def test_an_envelope_is_filed_by_its_payload_under_an_unverified_principal(nursery, place, bus):
    add(bus, "chat:AgentName", envelope("real", 1), "bus-1")
    nursery.record(place)
    wait_for(place, 1)

    ((key, seq, kind, principal, body),) = place.events()

    assert (key, seq, kind, principal) == ("real", 1, "message", "bus:redis")
    assert body == envelope("real", 1)
    assert place.rows("SELECT topic,bus_id FROM conversations_post") == [("chat:AgentName", "bus-1")]


def test_a_stream_event_without_any_id_is_filed_by_its_topic(nursery, place, bus):
    for _ in range(2):
        add(bus, "stream:conv", {"event": "user_message", "sender": "user:rosa", "text": "the same"})
    nursery.record(place)

    wait_for(place, 2)

    assert [(key, body["text"]) for key, *_, body in place.events()] == [("conv", "the same")] * 2
    assert place.rows("SELECT event_id FROM conversations_event") == [(None,), (None,)]


def test_one_envelope_on_several_topics_is_one_event_and_several_posts(nursery, place, bus):
    add(bus, "chat:conv", envelope("conv", 1), "bus-1")
    add(bus, "chat:Agent", envelope("conv", 1), "bus-2")
    nursery.record(place)
    until(lambda: len(place.rows("SELECT * FROM conversations_post")) == 2)

    assert stored(place) == 1
    posts = place.rows("SELECT topic,bus_id,event_seq FROM conversations_post ORDER BY bus_id")
    assert posts == [("chat:conv", "bus-1", 1), ("chat:Agent", "bus-2", 1)]


def test_the_same_envelope_in_another_spelling_is_the_same_event(nursery, place, bus):
    add(bus, "chat:conv", json.dumps(envelope("conv", 1)), "bus-1")
    add(bus, "chat:Agent", json.dumps(envelope("conv", 1), separators=(",", ":")), "bus-2")
    add(bus, "stream:conv", {"event": "log", "text": "after"})
    nursery.record(place)

    wait_for(place, 2)

    assert [kind for _, _, kind, *_ in place.events()] == ["message", "log"]
    assert place.rows("SELECT * FROM conversations_quarantine") == []


def test_an_id_used_for_other_words_is_quarantined_and_told(nursery, place, bus):
    add(bus, "chat:conv", envelope("conv", 1), "bus-1")
    add(bus, "chat:conv", envelope("conv", 1, content="other words"), "bus-2")
    nursery.record(place)

    gap = until(place.gaps)[0]

    assert (gap["reason"], gap["why"]) == ("quarantined", "its id was already stored with a different payload")
    assert [kind for _, _, kind, *_ in place.events("conv")] == ["message", "record.gap"]
    assert place.rows("SELECT source,conversation FROM conversations_quarantine") == [("chat:conv", "conv")]


def test_a_round_is_merged_by_entry_id(nursery, place, bus):
    for number in range(30):
        topic = ("chat:conv", "stream:conv", "chat:Agent")[number % 3]
        add(bus, topic, envelope("conv", number), f"b-{number}")
        time.sleep(0.002)  # so that no two are added in one millisecond
    nursery.record(place)
    wait_for(place, 30)

    assert [body["id"] for *_, body in place.events("conv")] == [f"m-{n}" for n in range(30)]


def test_signals_and_controls_that_name_no_conversation_are_posts_only(nursery, place, bus):
    add(bus, "signal:conv:done", {"event": "signal", "payload": {"ok": True}}, "s-1")
    add(bus, "control:Agent", {"type": "control", "content": "stop"}, "k-1")
    add(bus, "signal:named", {"event": "signal", "conversation_id": "conv", "payload": {"ok": 1}}, "s-2")
    nursery.record(place)
    until(lambda: len(place.rows("SELECT * FROM conversations_post")) == 3)

    posts = place.rows("SELECT topic,bus_id,event_seq,sent_at IS NULL FROM conversations_post ORDER BY topic")

    assert posts == [
        ("control:Agent", "k-1", None, 0),
        ("signal:conv:done", "s-1", None, 0),
        ("signal:named", "s-2", 1, 0),
    ]
    assert [(key, kind) for key, _, kind, *_ in place.events()] == [("conv", "signal")]


def test_a_dead_letter_is_an_event_of_its_conversation(nursery, place, bus):
    letter = {"event": "dead_letter", "agent": "A", "conversation_id": "conv", "envelope": envelope("conv", 1)}
    add(bus, "dlq:A", letter | {"error": "Traceback (most recent call last):\nValueError: no"}, "d-1")
    nursery.record(place)

    wait_for(place, 1)

    assert [(key, kind) for key, _, kind, *_ in place.events()] == [("conv", "dead_letter")]


def test_a_group_reader_on_the_same_streams_receives_everything(nursery, place, bus):
    bus.xgroup_create("chat:Agent", "magent2", id="0", mkstream=True)
    nursery.record(place)
    for number in range(200):
        add(bus, "chat:Agent", envelope("conv", number), f"b-{number}")
    wait_for(place, 200)

    first = bus.xreadgroup("magent2", "worker-1", {"chat:Agent": ">"}, count=100)
    pending = bus.xpending("chat:Agent", "magent2")["pending"]
    second = bus.xreadgroup("magent2", "worker-1", {"chat:Agent": ">"}, count=1000)

    assert (len(first[0][1]), pending, len(second[0][1])) == (100, 100, 100)
    assert [group["name"] for group in bus.xinfo_groups("chat:Agent")] == ["magent2"]
    assert bus.xpending("chat:Agent", "magent2")["pending"] == 200


@pytest.mark.slow
def test_first_contact_imports_what_is_there(nursery, place, bus):
    pipe = bus.pipeline()
    for number in range(5000):
        add(pipe, f"chat:c{number % 7}", envelope(f"c{number % 7}", number))
    pipe.execute()
    nursery.record(place)

    wait_for(place, 5000, within=60)

    assert place.value("SELECT COUNT(*) FROM conversations_conversation") == 7


def test_from_now_leaves_what_is_there(nursery, place, bus):
    add(bus, "chat:conv", envelope("conv", 1))
    nursery.record(place, "--from=now")
    until(lambda: place.rows("SELECT * FROM conversations_redisposition"))

    add(bus, "chat:conv", envelope("conv", 2))
    add(bus, "chat:other", envelope("other", 3))
    wait_for(place, 2)

    assert [body["id"] for *_, body in place.events()] == ["m-2", "m-3"]
    assert place.gaps() == []


def test_a_stream_whose_name_fits_no_column_is_quarantined(nursery, place, bus):
    add(bus, "chat:" + "x" * 400, envelope("conv", 1))
    add(bus, b"chat:" + b"\xff" * 300, envelope("conv", 1))
    add(bus, "chat:", envelope("conv", 2))
    nursery.record(place)
    until(lambda: len(place.rows("SELECT * FROM conversations_quarantine")) == 3)

    reasons = {reason for (reason,) in place.rows("SELECT reason FROM conversations_quarantine")}

    assert all(reason.startswith("topic must be") for reason in reasons)
    assert len({source for (source,) in place.rows("SELECT source FROM conversations_quarantine")}) == 3


def test_a_key_that_becomes_something_else_stops_nobody(nursery, place, bus):
    add(bus, "chat:conv", envelope("conv", 1))
    add(bus, "chat:other", envelope("other", 2))
    nursery.record(place)
    wait_for(place, 2)

    bus.delete("chat:conv")
    bus.rpush("chat:conv", "no stream")
    add(bus, "chat:other", envelope("other", 3))
    wait_for(place, 4)  # with the gap that the deleted stream leaves

    assert "m-3" in [body["id"] for *_, body in place.events("other")]
    assert [gap["reason"] for gap in place.gaps()] == ["deleted"]


@pytest.mark.slow
def test_two_thousand_streams_are_followed(nursery, place, bus):
    pipe = bus.pipeline()
    for number in range(2000):
        add(pipe, f"stream:s{number}", {"event": "token", "text": "t", "index": 0})
    pipe.execute()
    nursery.record(place)
    wait_for(place, 2000, within=60)

    took = []
    while len(took) < 10 and min(took, default=9) > 2.5:  # a busy machine is slow at times only
        began = time.monotonic()
        add(bus, "stream:s77", {"event": "token", "text": "cold", "index": len(took) + 1})
        wait_for(place, 2001 + len(took))
        took.append(time.monotonic() - began)

    assert min(took) < 2.5
    assert place.gaps() == []


def test_it_stops_in_order_and_leaves_no_row_behind(nursery, place, bus):
    child = nursery.record(place)
    until(lambda: place.rows("SELECT * FROM conversations_node"))

    assert child.terminate() == 0, child.output()
    assert place.rows("SELECT * FROM conversations_node") == []


def test_a_second_one_on_the_same_sqlite_says_why_not(nursery, place, bus):
    nursery.record(place)
    until(lambda: place.rows("SELECT * FROM conversations_node"))

    second = nursery.record(place)

    assert second.wait() == 1
    assert "is in use by another Switchboard" in second.output()
    assert "also records if it is started with SWITCHBOARD_REDIS_URL" in second.output()


def test_without_redis_to_read_it_says_so(nursery, place):
    place.redis_url = ""

    child = nursery.record(place)

    assert child.wait() == 1
    assert "SWITCHBOARD_REDIS_URL is not set" in child.output()


@pytest.mark.django_db(transaction=True)
def test_what_it_tells_of_itself_is_read_where_the_streams_change():
    streams = set()

    class Asked(RecorderService):
        def facts(self):
            streams.add(threading.current_thread().name)
            return super().facts()

    recorder = EmbeddedRecorder(url := f"redis://127.0.0.1:{free_port()}")
    recorder.service = Asked(url)
    recorder.start()
    try:
        until(Node.objects.filter(kind="recorder").exists, what="the recorder to tell of itself")
    finally:
        recorder.close()

    assert streams == {"recorder"}, "read in the database's thread while the loop finds streams"
