"""Reads are bounded in bytes, before anything is fetched: 40 MiB of history are never in memory at once."""

import json

import pytest
from django.db import connection

from conversations import search
from conversations.core import principals
from conversations.events import log, verify_chains
from conversations.events.log import read_many
from conversations.search import index_writer
from tests.support.peaks import peak
from tests.support.unchecked import from_text
from tests.support.verified import verify_events

LARGE = 1_000_000  # characters of an event's text
COUNT = 40
FEW_MIB = 24  # what a bounded read of 4 MiB may need, in the database's client library and in Python
AGENT = principals.token_principal("robot")

pytestmark = pytest.mark.django_db


def event(key, **payload):
    body = json.dumps({"conversation_id": key, **payload}, ensure_ascii=False)
    return from_text(f"stream:{key}", body, AGENT)


def fill(key, count=COUNT, **payload):
    """Store large events, one a transaction."""
    for n in range(count):
        log.append([event(key, **{"event": "log", "message": f"{n} " + "x" * LARGE} | payload)])


def seqs(events):
    return [event.seq for event in events]


@pytest.mark.slow
@pytest.mark.parametrize("read", [log.read_after, log.read_told])
def test_a_read_forwards_fetches_a_few_mib_at_a_time_and_comes_to_the_end(read):
    fill("a")
    seqs_read, after = [], 0

    with peak() as needed:
        while some := read("a", after):
            assert len(some) <= 6
            seqs_read += seqs(some)
            after = seqs_read[-1]
            del some

    assert seqs_read == list(range(1, COUNT + 1))
    assert needed.mib < FEW_MIB


@pytest.mark.slow
def test_a_read_backwards_fetches_a_few_mib_at_a_time():
    fill("a")

    with peak() as needed:
        newest = seqs(log.read_before("a", 1 << 53))

    assert newest == list(range(COUNT - 4, COUNT + 1))
    assert needed.mib < FEW_MIB


@pytest.mark.slow
def test_what_came_to_many_conversations_is_read_a_few_mib_at_a_time():
    keys = ["a", "b"]
    for key in keys:
        fill(key, COUNT // 2)

    with peak() as needed:
        events, is_whole = read_many.read_after_many(dict.fromkeys(keys, 0))

    assert seqs(events["a"]) == [1, 2, 3, 4, 5]
    assert not is_whole
    assert needed.mib < FEW_MIB


@pytest.mark.slow
def test_a_chain_is_checked_a_few_mib_at_a_time():
    fill("a")

    with peak() as needed:
        verdict = verify_events()

    assert verdict == verify_chains.ChainReport(COUNT, ok=True)
    assert needed.mib < FEW_MIB


@pytest.mark.parametrize(
    "text", ["x" * LARGE, pytest.param("€" * 150_000, marks=pytest.mark.thorough)], ids=["letters", "euro signs"]
)
def test_the_index_fetches_a_few_mib_at_a_time_and_leaves_no_event_out(text):
    fill("a", message=text)
    index_writer.begin()
    seqs: list[int] = []

    with peak() as needed:
        while (batch := index_writer.read(0, 512)).steps:
            index_writer.store(batch)
            seqs += [row.id for row in batch.rows]
            del batch

    assert len(set(seqs)) == len(seqs) == COUNT
    assert search.lag().events == 0
    assert needed.mib < FEW_MIB


def test_what_came_to_many_conversations_is_whole_and_in_order_where_it_is_little():
    log.append([event(key, event="log", n=n) for n in range(30) for key in ("b", "a", "ö")])

    events_read, is_whole = read_many.read_after_many({"a": 0, "b": 28, "ö": 0, "none": 0})

    assert is_whole
    assert {key: seqs(events) for key, events in events_read.items()} == {
        "a": list(range(1, 31)),
        "b": [29, 30],
        "ö": list(range(1, 31)),
    }
    assert {event.conversation for events in events_read.values() for event in events} == {"a", "b", "ö"}


def test_sizes_are_bytes_not_characters():
    """A euro sign is one character and three bytes."""
    log.append([event("a", event="log", message="€" * 300_000) for _ in range(8)])
    body = log.read_after("a", 0, 1)[0].body

    size = len(body.encode()) if "€" in body else len(body)

    assert len(log.read_after("a", 0)) == (4 << 20) // size + 1, connection.vendor
