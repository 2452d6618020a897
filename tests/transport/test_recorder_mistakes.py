"""What a recorder does when something goes wrong that nobody thought of: it costs one thing, and it is said."""

import json

import pytest
from django.db import OperationalError, connection
from psycopg.errors import ProgramLimitExceeded

from conversations.models import Event, Quarantine, RedisPosition
from conversations.realtime.readiness import not_ready
from conversations.transport import decode_entry
from conversations.transport.recorder import gap_detection, parse_entry, store
from conversations.transport.recorder.gap_detection import Loss
from conversations.transport.recorder.service import EmbeddedRecorder
from conversations.transport.recorder.store import EntryStore, RecorderSuperseded
from conversations.transport.recorder.streams import Stream, first_seen
from tests.support.live import until
from tests.support.recorders import add

pytestmark = pytest.mark.django_db(transaction=True)
SAYS = b'{"event":"log","text":"%b"}'


def followed(*names):
    """Return the filing of a recorder that has just found these streams."""
    file = EntryStore()
    file.follow([first_seen(name.encode(), 0) for name in names])
    return file


def entry(stream, number, text=b"well"):
    return parse_entry.parse_entry(stream, f"{number}-1", number, [b"payload", SAYS % text], found_at=0)


@pytest.fixture
def refusing():
    """Have the database itself refuse the events whose body holds `never`, and quarantined rows that hold anything."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            refuse = "BEGIN SELECT RAISE(ABORT, 'refused'); END"
            cursor.execute(
                "CREATE TRIGGER refused_body BEFORE INSERT ON conversations_event"
                f" WHEN NEW.body LIKE '%never%' {refuse}"
            )
            cursor.execute(
                "CREATE TRIGGER no_raw BEFORE INSERT ON conversations_quarantine"
                f" WHEN length(NEW.raw)>0 AND NEW.source='chat:bare' {refuse}"
            )
        else:
            cursor.execute(
                "ALTER TABLE conversations_event ADD CONSTRAINT refused_body CHECK (body NOT LIKE '%never%')"
            )
            cursor.execute(
                "ALTER TABLE conversations_quarantine ADD CONSTRAINT no_raw"
                " CHECK (length(raw)=0 OR source<>'chat:bare')"
            )
    yield
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("DROP TRIGGER refused_body")
            cursor.execute("DROP TRIGGER no_raw")
        else:
            cursor.execute("ALTER TABLE conversations_event DROP CONSTRAINT refused_body")
            cursor.execute("ALTER TABLE conversations_quarantine DROP CONSTRAINT no_raw")


@pytest.mark.usefixtures("refusing")
def test_an_entry_the_database_never_takes_is_quarantined_and_its_neighbours_are_stored():
    file = followed("stream:c")

    file.store([entry("stream:c", 1), entry("stream:c", 2, b"never"), entry("stream:c", 3)])

    assert [e.kind for e in Event.objects.order_by("seq")] == ["log", "record.gap", "log"]
    assert Quarantine.objects.get().entry == "2-1"
    assert RedisPosition.objects.get().last_id == "3-1"


@pytest.mark.usefixtures("refusing")
def test_an_entry_that_not_even_the_quarantine_takes_leaves_its_place_and_the_reason():
    file = followed("chat:bare")

    file.store([parse_entry.parse_entry("chat:bare", "1-1", 1, [b"payload", b"no json"], found_at=0)])

    message = Quarantine.objects.get()
    assert (message.entry, bytes(message.raw), message.size) == ("1-1", b"", 7)
    assert message.reason.startswith("the entry could not be stored")
    assert RedisPosition.objects.get().last_id == "1-1"


def test_a_value_no_index_takes_is_the_entrys_fault_and_a_lost_connection_is_not():
    too_large, gone = OperationalError("index row size 8216 exceeds"), OperationalError("server closed the connection")
    too_large.__cause__ = ProgramLimitExceeded()

    assert not store._is_passing(too_large)
    assert store._is_passing(gone)


def test_an_entry_that_cannot_be_read_for_no_known_reason_is_quarantined(monkeypatch):
    def stumble(*_, **__):
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(decode_entry, "event_from_entry", stumble)

    read = entry("stream:c", 1)

    assert read.event is None
    assert read.poison.reason == "the entry could not be read: ZeroDivisionError: a bug of ours"


@pytest.mark.parametrize("count", [(1 << 63) - 1, -1, -(1 << 63)])
def test_a_count_that_somebody_set_beyond_all_sense_counts_as_none(count):
    answer = [b"length", 1, b"last-generated-id", b"5-0", b"entries-added", count, b"first-entry", None]

    assert gap_detection.info_of(answer).added is None


@pytest.mark.slow
def test_a_flushed_redis_of_many_streams_is_told_in_few_queries(django_assert_max_num_queries):
    agents, conversations = [f"chat:a{n}" for n in range(600)], [f"stream:c{n}" for n in range(600)]
    file = followed(*agents, *conversations)
    streams = [Stream(name.encode(), name, "0-0", 0, 0) for name in (*agents, *conversations)]
    losses = [Loss(stream, "emptied", 3, "0-0", None, None) for stream in streams]

    with django_assert_max_num_queries(80):
        file.report_losses(losses)

    assert not RedisPosition.objects.exists()
    assert Event.objects.filter(kind="record.gap").count() == 600
    assert Quarantine.objects.count() == 600


def test_a_recorder_outlives_a_mistake_says_it_and_goes_on(bus, redis_server, monkeypatch):
    def stumble(*_):
        raise ZeroDivisionError("a bug of ours")

    add(bus, "stream:c", json.loads(SAYS % b"well"))
    recorder = EmbeddedRecorder(redis_server.url)
    monkeypatch.setattr(EntryStore, "store", stumble)
    recorder.start()
    try:
        until(lambda: recorder.state != "ok", what="the mistake to be told")
        state, is_alive = recorder.state, recorder.is_alive()
        monkeypatch.undo()
        until(Event.objects.exists, what="the recorder to go on")
        until(lambda: recorder.state == "ok", what="the trouble to be over")
    finally:
        recorder.close()

    assert state == "reading: a bug of ours"
    assert not_ready({"recorder": state}) == [], "pages and doors do without it meanwhile"
    assert is_alive


def test_a_recorder_whose_position_another_has_moved_stores_nothing():
    first, second = followed("stream:a"), EntryStore()
    second.positions()
    first.store([entry("stream:a", 1)])

    with pytest.raises(RecorderSuperseded):
        second.store([entry("stream:a", 1)])

    assert Event.objects.count() == 1
    assert RedisPosition.objects.get().last_id == "1-1"
