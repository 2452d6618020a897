"""Two hundred payloads that somebody's program may send: kept or quarantined, visible, and nobody waits for them."""

import time

import pytest

from tests.support.live import until
from tests.support.poison import CASES, CONVERSATION, LARGE, TOPIC
from tests.support.recorders import add, envelope, stored

UNFIT = [case for case in CASES if not case.is_fit]


def quarantined(place):
    return place.value("SELECT COUNT(*) FROM conversations_quarantine")


@pytest.mark.slow
def test_every_poison_is_kept_or_quarantined_and_told(either, redis_server, bus):
    nursery, place = either
    child = nursery.record(place)
    for number, case in enumerate(CASES):
        add(bus, TOPIC, case.payload, f"poison-{number}")
    add(bus, TOPIC, envelope(CONVERSATION, "last"))
    until(lambda: any(body.get("id") == "m-last" for *_, body in place.events(CONVERSATION)), within=60)

    entries = [gap["entry"] for gap in place.gaps()]
    quarantined = {row[0] for row in place.rows("SELECT entry FROM conversations_quarantine")}
    assert len(quarantined) == len(UNFIT), "not every unfit payload is in the quarantine"
    assert sorted(entries) == sorted(quarantined)
    assert {gap["reason"] for gap in place.gaps()} == {"quarantined"}
    assert stored(place) == len(CASES) + 1
    assert child.returncode is None
    nursery.run(place, "verify")


def test_quarantined_bytes_are_kept_with_their_digest(nursery, place, bus):
    for number, case in enumerate(UNFIT):
        add(bus, "chat:Agent", case.payload, f"poison-{number}")
    nursery.record(place)
    until(lambda: quarantined(place) == len(UNFIT), within=60)

    rows = place.rows("SELECT raw,size,source FROM conversations_quarantine ORDER BY id")

    assert [bytes(raw) for raw, _, _ in rows] == [case.payload[: 64 << 10] for case in UNFIT]
    assert [size for _, size, _ in rows] == [len(case.payload) for case in UNFIT]
    assert {source for *_, source in rows} == {"chat:Agent"}


@pytest.mark.slow
def test_neighbours_do_not_wait_for_poison(nursery, place, bus):
    add(bus, "chat:neighbour", envelope("neighbour", "first"))
    nursery.record(place)
    until(lambda: stored(place) == 1)
    delays = []

    for number, case in enumerate(UNFIT[:40]):
        add(bus, TOPIC, case.payload, f"poison-{number}")
        began = time.monotonic()
        add(bus, "chat:neighbour", envelope("neighbour", number))
        seen = "SELECT head_seq FROM conversations_conversation WHERE key='neighbour'"
        until(lambda: place.value(seen) == number + 2)  # noqa: B023
        delays.append(time.monotonic() - began)

    delays.sort()
    assert delays[len(delays) // 2] <= 0.1, delays


@pytest.mark.thorough
def test_what_is_too_large_is_kept_in_part_and_the_others_go_on(nursery, place, bus):
    nursery.record(place)
    for number, large in enumerate(LARGE):
        add(bus, TOPIC, large.make(), f"large-{number}")
        add(bus, "chat:neighbour", envelope("neighbour", number))
    until(lambda: quarantined(place) == len(LARGE), within=60)
    until(lambda: stored(place) == 2 * len(LARGE))

    rows = place.rows("SELECT size,length(raw),reason,conversation FROM conversations_quarantine ORDER BY id")

    assert [size for size, *_ in rows] == [len(large.make()) for large in LARGE]
    assert {length for _, length, *_ in rows} == {64 << 10}
    assert all("at most 1,048,576 bytes" in reason for _, _, reason, _ in rows)
    assert {conversation for *_, conversation in rows} == {CONVERSATION}


def test_an_entry_without_a_payload_is_quarantined(nursery, place, bus):
    bus.xadd("stream:conv", {"id": "b-1", "text": "no payload"})
    bus.xadd("stream:conv", {"payload": '{"event":"log","text":"good"}', "id": "x" * 500})
    bus.xadd("stream:conv", {"payload": '{"event":"log","text":"good"}'})
    nursery.record(place)
    until(lambda: stored(place) == 3)

    rows = place.rows("SELECT raw,reason FROM conversations_quarantine ORDER BY id")

    assert bytes(rows[0][0]) == b"id: b-1\ntext: no payload"
    assert [reason for _, reason in rows] == [
        "the entry must have the fields id and payload; payload is missing",
        "id must be at most 200 characters",
    ]
    assert [kind for _, _, kind, *_ in place.events()] == ["record.gap", "record.gap", "log"]


def test_a_message_without_a_conversation_is_quarantined_quietly(nursery, place, bus):
    add(bus, "chat:Agent", {"type": "message", "sender": "user:rosa", "content": "to whom?"})
    nursery.record(place)
    until(lambda: quarantined(place) == 1)

    assert place.rows("SELECT reason,conversation FROM conversations_quarantine") == [
        ("payload.conversation_id must be the conversation's id", None)
    ]
    assert stored(place) == 0
