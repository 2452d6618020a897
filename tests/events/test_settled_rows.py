"""The feed's order of rows: what is not settled is not told, so that nothing is passed over."""

from functools import partial

import pytest
from django.db import connection

from conversations.core import principals
from conversations.events import log
from conversations.events.log import settled_rows
from conversations.events.log.import_staging import StagedBatch
from conversations.models import Event
from tests.support.databases import IS_POSTGRESQL
from tests.support.growth import sqlite_steps
from tests.support.tiers import rounds
from tests.support.unchecked import unchecked


@pytest.mark.django_db(transaction=True)
def test_rows_are_read_in_order_and_of_one_conversation():
    for key in ("a", "b", "a"):
        log.append([log.from_internal(key, {"event": "log", "text": key}, principals.SYSTEM)])
    row = settled_rows.SettledRows().look(5).settled

    assert row is not None
    assert [(fed.event.conversation, fed.event.seq) for fed in settled_rows.between(0, row)] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
    ]
    assert [fed.event.seq for fed in settled_rows.between(0, row, conversation="a")] == [1, 2]
    assert settled_rows.between(0, row, names=("Desk", "agent:Desk")) == []


@pytest.mark.django_db(transaction=True)
def test_a_discarded_import_takes_back_no_place_in_the_feed():
    rows, payload = settled_rows.SettledRows(), {"event": "log", "text": "a"}
    log.append([log.from_internal("a", payload, principals.SYSTEM)])
    before = rows.look(5)
    staged = StagedBatch()
    log.append([log.from_internal(staged.stage("imported"), payload, principals.SYSTEM)], chained_as=staged.chained_as)
    during = rows.look(5)

    staged.discard()
    after = rows.look(5)

    assert before.highest_given < during.highest_given == after.highest_given
    log.append([log.from_internal("a", payload, principals.SYSTEM)])
    assert [fed.event.seq for fed in settled_rows.between(during.settled, rows.look(5).settled)] == [2]


@pytest.mark.django_db(transaction=True)
def test_imported_events_are_read_only_with_their_conversation():
    payload, imported = {"event": "log", "text": "a"}, principals.import_principal("old.json")
    for by in (principals.SYSTEM, imported):
        log.append([unchecked("a", payload, by, bus_id=by.text)])
    row = settled_rows.SettledRows().look(5).settled

    assert [fed.event.principal for fed in settled_rows.between(0, row)] == ["system"]
    both = settled_rows.between(0, row, conversation="a")
    assert [fed.event.principal for fed in both] == ["system", "import:old.json"]


@pytest.mark.skipif(IS_POSTGRESQL, reason="it counts the steps of SQLite")
@pytest.mark.django_db(transaction=True)
def test_a_page_of_a_conversation_costs_the_same_however_long_it_is():
    few, many = settled_rows.PAGE + 100, rounds(4 * settled_rows.PAGE, 40 * settled_rows.PAGE)
    for key, count in (("short", few), ("long", many)):
        log.append([log.from_internal(key, {"event": "log", "text": "a"}, principals.SYSTEM) for _ in range(count)])
    row = settled_rows.SettledRows().look(5).settled

    for after in (0, row):  # at the beginning, and where a follower looks for news
        short, long = (
            sqlite_steps(partial(settled_rows.between, after, row, conversation=key)) for key in ("short", "long")
        )
        assert long < 1.2 * short


@pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_row_is_not_settled_while_an_earlier_transaction_is_at_work():
    import psycopg

    with psycopg.connect(**_parameters()) as other:
        other.execute("SELECT pg_current_xact_id()")
        log.append([log.from_internal("a", {"event": "log", "text": "a"}, principals.SYSTEM)])

        rows = settled_rows.SettledRows()
        assert rows.look(0.05).settled is None
        other.rollback()

        assert rows.look(60).settled is not None


@pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_row_is_settled_though_transactions_overlap_without_end():
    import psycopg

    rows, settled = settled_rows.SettledRows(), []
    with psycopg.connect(**_parameters()) as first, psycopg.connect(**_parameters()) as second:
        first.execute("SELECT pg_current_xact_id()")
        for ending, beginning in ((first, second), (second, first), (first, second)):
            log.append([log.from_internal("a", {"event": "log", "text": "a"}, principals.SYSTEM)])
            settled.append(rows.look(0.05).settled)
            beginning.execute("SELECT pg_current_xact_id()")
            ending.rollback()
        settled.append(rows.look(0.05).settled)

    assert settled == [None, *Event.objects.order_by("id").values_list("id", flat=True)]


def _parameters() -> dict[str, object]:
    parameters = connection.get_connection_params()
    return {name: parameters[name] for name in ("dbname", "user", "password", "host", "port") if name in parameters}
