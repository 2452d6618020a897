"""How the index comes to be: asynchronously, once, never of tokens, and gone when its events are."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import DataError, connection, transaction
from django.test.utils import CaptureQueriesContext

from conversations import search
from conversations.asgi.metrics import MetricsCollector
from conversations.core import principals
from conversations.core.single_process_lease import SingleProcessLease
from conversations.events import log
from conversations.events.log import commit_batch
from conversations.events.log.import_staging import StagedBatch
from conversations.models import Conversation, Event
from conversations.realtime.node_facts import NodeMetrics
from conversations.realtime.server_runtime import ServerRuntime
from conversations.search import index_writer, searchable_text, tokenizer
from conversations.search.finder import END
from conversations.search.index_rows import Wanted
from conversations.search.index_tables import of_conversation, of_this, row_of
from conversations.search.indexer import Indexer
from dashboard import demo
from tests.support.event_types import EXAMPLES
from tests.support.live import until
from tests.support.searching import ROBOT, catch_up, say, search_all

pytestmark = pytest.mark.django_db


def rows(key: str = "desk") -> int:
    """Count what the index holds of a conversation, events that are no more included."""
    wanted = Wanted([], [], [of_conversation(Conversation.objects.get(key=key).id)])
    with connection.cursor() as cursor:
        return len(of_this().find(cursor, wanted, 0, END, 1000, inf)[0])


def known(word: str) -> bool:
    """Return whether the index knows a word."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM conversations_searchword WHERE word=%s", [word])
        return cursor.fetchone() is not None


def test_appending_indexes_nothing_and_the_lag_says_so():
    say("desk", "refund", "refund")
    say("mill", "refund")

    assert search_all("refund") == []
    assert search.lag() == search.Lag(3)

    catch_up()

    assert len(search_all("refund")) == 3
    assert search.lag() == search.Lag(0)


def test_tokens_are_passed_over_and_their_output_is_found():
    tokens = [{"event": "token", "text": f"secretly{n} ", "index": n} for n in range(700)]
    say("desk", *tokens, {"event": "output", "agent": "Clerk", "text": "refund done"})
    catch_up()

    assert search_all("secretly3") == []
    assert search_all("refund") == [("desk", 701)]
    assert rows() == 1


@pytest.mark.slow
def test_many_conversations_are_indexed_in_turn_and_a_long_one_holds_up_nobody():
    for number in range(130):
        say(f"c{number:03}", f"refund {number}")
    say("c000", *["more words"] * 600)
    indexer = Indexer()

    while ("c129", 1) not in search_all("refund"):
        assert indexer.step()

    assert search.lag().events > 100  # of the long one
    catch_up()
    assert len(search_all("more")) == 600


def test_two_indexers_store_everything_once():
    say("desk", "refund")
    mine, theirs = index_writer.read(0, 10), index_writer.read(0, 10)
    index_writer.store(mine)

    with pytest.raises(index_writer.IndexSuperseded), transaction.atomic():
        index_writer.store(theirs)

    assert rows() == 1
    assert search_all("refund") == [("desk", 1)]


def test_an_import_is_found_when_it_is_seen_and_not_before():
    batch = StagedBatch()
    say(batch.stage("brought"), "refund", chained_as=batch.chained_as)
    catch_up()
    assert search_all("refund") == []

    batch.publish()
    catch_up()

    assert search_all("refund") == [("brought", 1)]


def test_forgotten_events_leave_no_word_behind():
    say("desk", "refund for Ann", "refund for Bob")
    catch_up()
    conversation = Conversation.objects.get(key="desk")

    with log.write_transaction():
        search.forget(conversation.id, [1])

    assert search_all("refund") == [("desk", 2)]
    assert search_all("ann") == []
    assert known("refund")
    assert not known("ann")


def test_an_event_erased_while_it_was_read_is_not_stored():
    say("desk", "refund for Ann")
    round_ = index_writer.read(0, 10)
    Event.objects.update(erased_by="redaction:1", body=json.dumps({"sender": "agent:Triage"}))

    with pytest.raises(index_writer.IndexSuperseded), transaction.atomic():
        index_writer.store(round_)

    catch_up_erased = index_writer.read(0, 10)
    assert [row.words for row in catch_up_erased.rows] == [[]]


def test_an_event_erased_before_it_was_indexed_keeps_nothing_after_it_from_being_found():
    say("desk", "refund for Ann", "refund for Bo")
    Event.objects.filter(seq=1).update(erased_by="redaction:1", body=json.dumps({"sender": "agent:Triage"}))

    catch_up()

    assert search_all("refund") == [("desk", 2)]
    assert index_writer.lag().events == 0


def test_an_event_erased_after_it_was_indexed_is_found_no_more():
    say("desk", "refund for Ann", "refund for Bo")
    catch_up()

    Event.objects.filter(seq=2).update(erased_by="redaction:1", body=json.dumps({"sender": "agent:Triage"}))

    assert search_all("refund") == [("desk", 1)]


def test_a_demo_conversation_that_goes_takes_its_words_along():
    opened = log.from_internal(
        "demo-1", {"event": "conversation.opened", "title": "A demo", "demo": True}, principals.SYSTEM
    )
    payload = {"type": "message", "sender": "agent:Dialogue", "recipient": "user", "content": "zebra"}
    log.append(
        [
            opened,
            log.from_internal("demo-1", payload, principals.SYSTEM, topic="chat:demo-1")._replace(starts_no_run=True),
        ]
    )
    catch_up()
    assert search_all("zebra")

    with log.write_transaction():
        search.forget(Conversation.objects.get(key="demo-1").id)
    assert rows("demo-1") == 0
    demo._remove("demo-1")  # forgets a second time

    assert search_all("zebra") == []
    assert not known("zebra")


def test_many_words_are_forgotten_by_few_statements_and_those_of_others_stay():
    say("desk", " ".join(f"word{n}" for n in range(1000)))
    say("other", "word7 here")
    catch_up()

    with CaptureQueriesContext(connection) as statements, log.write_transaction():
        search.forget(Conversation.objects.get(key="desk").id)

    assert len(statements) < 20
    assert [n for n in range(1000) if known(f"word{n}")] == [7]
    assert search_all("word7") == [("other", 1)]


def test_reindex_makes_the_same_again():
    say("desk", "refund", {"event": "tool_step", "name": "lookup", "args": {"street": "Elm"}, "status": "start"})
    catch_up()
    before = search_all(conversation="desk")

    index_writer.empty()
    assert search_all(conversation="desk") == []
    catch_up()

    assert search_all(conversation="desk") == before
    assert rows() == 2


@pytest.mark.django_db(transaction=True)
def test_the_command_makes_it_again(capsys):
    say("desk", "refund")
    catch_up()

    call_command("reindex")

    assert "Indexed 1 event." in capsys.readouterr().out
    assert search_all("refund") == [("desk", 1)]


@pytest.mark.django_db(transaction=True)
def test_the_thread_finds_what_is_said_and_ends_when_told():
    indexer = Indexer()
    indexer.start()
    try:
        say("desk", "refund")
        until(lambda: search_all("refund") == [("desk", 1)], what="the event to be found")
        assert indexer.state == "ok"
    finally:
        indexer.close()
    assert indexer.state == "the indexing thread has ended"


def test_it_looks_each_second_whatever_is_notified(monkeypatch):
    """On SQLite nothing notifies a server of what a command commits."""
    indexer, waits = Indexer(), []
    monkeypatch.setattr(indexer._news, "wait", waits.append)

    indexer._run_once()

    assert waits == [1.0]


def test_what_cannot_be_read_takes_no_other_with_it(monkeypatch, caplog):
    say("desk", "refund", "broken", "refund")
    whole = index_writer.row_of

    def fails(id_, conversation, kind, principal, body):
        assert "broken" not in body
        return whole(id_, conversation, kind, principal, body)

    monkeypatch.setattr(index_writer, "row_of", fails)
    catch_up()

    assert search_all("refund") == [("desk", 3), ("desk", 1)]
    assert search_all(conversation="desk") == [("desk", 3), ("desk", 2), ("desk", 1)]
    assert "cannot be searched" in caplog.text


MIXED = {
    "title": "Über ﬁne", "content": "e\u0301", "text": "\u0301 first", "name": "look_up", "args": {"x": "東京タワー"},
    "output": ["가나", "data: x", "data:image/png;base64,AAAA"], "error": "x" * 70, "note": "한", "nul": "a\0b",
    "count": 12345678901234567890, "share": 0.1, "huge": 1e22, "half": "\ud800",
}  # fmt: skip


@pytest.mark.parametrize("body", [MIXED, *(body for bodies in EXAMPLES.values() for body in bodies)])
def test_an_event_is_indexed_by_the_words_of_each_of_its_texts(body):
    kind = body.get("event") or body.get("type") or "unknown"
    row = row_of(1, 2, kind, "user:ada", json.dumps(body))
    parts = [
        tokenizer.split_words(tokenizer.composed(part.text))
        for part in searchable_text.parts_of(kind, json.loads(json.dumps(body)))
    ]

    assert list(row.words) == [word for words, _ in parts for word in words]
    assert row.characters == {character for _, characters in parts for character in characters}


@pytest.mark.parametrize("number", ["-0", "1e22", "18446744073709551616", "4.9e-325", "1E400", "NaN", '"\\ud800"'])
def test_a_body_is_read_as_by_the_parser_that_it_was_first_indexed_by(number):
    assert repr(searchable_text.read(f'{{"x": {number}}}')) == repr(json.loads(f'{{"x": {number}}}'))


@pytest.mark.slow
def test_a_very_long_event_is_found_by_its_first_words_and_costs_no_other():
    say("desk", " ".join(f"w{number}" for number in range(40_000)), "ひらがな" * 20_000, "refund")
    catch_up()

    assert search_all("w0") == search_all("w15999") == [("desk", 1)]
    assert search_all("w39999") == []
    assert search_all("らが") == [("desk", 2)]
    assert search_all("refund") == [("desk", 3)]


@pytest.mark.parametrize("query", [index_writer._PENDING, index_writer._PENDING_WORDS])
def test_what_is_behind_is_found_by_the_partial_index(query):
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan=off")
        cursor.execute(explain + query, [0, 10])
        plan = " ".join(str(row) for row in cursor.fetchall())

    assert "conversation_unindexed" in plan
    assert query == index_writer._PENDING or "event_drawn" in plan


def test_one_lease_is_one_holders_until_it_lets_go():
    first, other = SingleProcessLease("work"), SingleProcessLease("work")

    assert first.hold()
    assert not other.hold()
    assert first.hold()
    first.release()
    assert other.hold()
    assert not first.renew()
    assert not first.take()
    assert other.renew()


def test_who_may_publish_as_robot_is_found_by_its_principal():
    say("desk", "refund")
    catch_up()

    assert search_all("refund", sender=str(ROBOT)) == [("desk", 1)]


def test_ops_and_metrics_tell_what_is_not_searchable_yet():
    say("desk", "refund", "refund")
    engine = ServerRuntime()
    engine.indexer = Indexer()
    engine.indexer.lag = search.lag()

    figures = {family.name: family.samples[0].value for family in MetricsCollector(engine).collect() if family.samples}
    facts = NodeMetrics(engine).facts()

    assert figures["switchboard_search_lag_events"] == 2
    assert facts["search_lag"] == 2
    assert facts["warnings"][-1] == "Search is missing new events: the indexing thread has ended"


def test_while_an_answer_streams_nothing_is_written_for_its_tokens():
    say("desk", "refund")
    indexer = catch_up()
    say("desk", *[{"event": "token", "text": "re", "index": n} for n in range(9)])

    indexer.step()
    assert Conversation.objects.get(key="desk").indexed_seq == 1
    assert search.lag() == search.Lag(0)

    indexer._swept_at = -inf
    indexer.step()
    assert Conversation.objects.get(key="desk").indexed_seq == 10


def test_tokens_alone_do_not_wake_the_indexer():
    indexer = Indexer()
    say("desk", {"event": "token", "text": "re", "index": 0}, "refund")
    tokens, words = log.read_after("desk", 0)

    indexer._committed([tokens])
    assert not indexer._news.is_set()
    indexer._committed([tokens, words])
    assert indexer._news.is_set()


def test_a_row_that_no_index_takes_is_left_without_its_words(monkeypatch, caplog):
    say("desk", "refund", "too much", "refund")
    insert = type(of_this()).insert

    def refuses(tables, cursor, rows):
        if any("much" in row.words for row in rows):
            raise DataError("too much")
        insert(tables, cursor, rows)

    monkeypatch.setattr(type(of_this()), "insert", refuses)
    catch_up()

    assert search_all("refund") == [("desk", 3), ("desk", 1)]
    assert len(search_all(conversation="desk")) == 3
    assert "cannot be searched" in caplog.text


@pytest.mark.slow
@pytest.mark.sqlite("its write-ahead log")
@pytest.mark.django_db(transaction=True)
def test_the_command_keeps_the_write_ahead_log_short(monkeypatch):
    monkeypatch.setattr(commit_batch, "CHECKPOINT", 100)  # pages
    say("desk", *(" ".join(f"word{number}of{place}" for place in range(50)) for number in range(2000)))
    log_file = Path(f"{connection.settings_dict['NAME']}-wal")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_autocheckpoint=0")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    call_command("reindex")

    assert log_file.stat().st_size < 1000 * 4096  # bytes
