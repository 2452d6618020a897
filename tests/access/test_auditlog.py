"""The list of audit entries: filters find what a look at every entry finds, page by page; export is that list."""

import json
import random
import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.access.audit import chain
from conversations.access.audit.listing import query as listing
from conversations.access.audit.listing import sql_filters
from conversations.access.audit.listing.export import EXPORT
from conversations.access.audit.listing.filters import AuditFilters
from conversations.core import principals
from conversations.core.errors import Invalid
from conversations.core.micros import to_datetime
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.models import AuditEntry, AuditSpan
from tests.support import listed
from tests.support.auditlog import BEGAN, STEP_US, brute, drawn_filters, record

pytestmark = pytest.mark.django_db


def listed_seqs(filters: AuditFilters, **bounds: int) -> list[int]:
    """Read all pages; return the seqs."""
    return [entry.seq for entry in listed.every_row(listing.newest, filters, **bounds)]


@pytest.mark.slow
def test_filters_find_what_a_look_at_every_entry_finds():
    record(250)

    listed.assert_filters_match(
        listed_seqs, drawn_filters, brute, random.Random(21), count=50, limit=7, walks=[25, 60], least=6
    )


def test_a_range_of_one_minute_finds_its_entries():
    record(3)
    first = AuditEntry.objects.order_by("seq").first()
    minute = to_datetime(first.at).strftime("%Y-%m-%dT%H:%MZ")

    assert first.seq in listed_seqs(listed.read_filters(AuditFilters, f"from={minute}&to={minute}"))


def test_a_time_range_is_found_in_a_long_log_by_a_few_looks(monkeypatch):
    monkeypatch.setattr(AuditSpan, "BITS", 3)
    record(400)
    dice = random.Random(22)
    for _ in range(15):
        since, until = sorted(BEGAN + dice.randint(-5, 405) * STEP_US for _ in range(2))
        wanted = brute(AuditFilters(since=since, until=until))

        assert listed_seqs(AuditFilters(since=since, until=until), walk=60) == wanted
        if wanted:
            above, below = sql_filters.seqs_between(since, until)
            assert 0 <= min(wanted) - 1 - above <= 16
            assert 0 <= below - 1 - max(wanted) <= 16


@pytest.mark.thorough
def test_a_clock_that_was_set_back_hides_no_entry(monkeypatch):
    monkeypatch.setattr(AuditSpan, "BITS", 3)
    record(6_000)
    day = 86_400_000_000
    for seq, at in ((5_990, BEGAN - 9 * day), (3, BEGAN + 90 * day), (2_500, BEGAN + 90 * day)):
        AuditEntry.objects.filter(seq=seq).update(at=at)
        chain._note_time(AuditEntry.objects.get(seq=seq))

    assert listed_seqs(AuditFilters(until=BEGAN - 8 * day)) == [5_990]
    assert listed_seqs(AuditFilters(since=BEGAN + 89 * day)) == [2_500, 3]


def test_what_is_entered_is_found_by_its_time():
    before = time.time_ns() // 1000
    with log.write_transaction():
        chain.add_entry(principals.SYSTEM, "pause", "conversation:c")

    assert listed_seqs(AuditFilters(since=before, until=time.time_ns() // 1000)) == [1]
    assert listed_seqs(AuditFilters(until=before - 1)) == []


def test_pages_neither_repeat_nor_skip_while_entries_are_added():
    record(60)
    filters, seen, before = AuditFilters(who=("user:maria",)), [], None
    wanted = brute(filters)

    while True:
        page = listing.newest(filters, before=before, limit=2)
        seen += [entry.seq for entry in page.items]
        record(5, seed=len(seen))
        if page.after is None:
            break
        before = page.after

    assert seen == wanted
    assert len(brute(filters)) > len(wanted)


def test_an_address_says_the_same_filters_again():
    record(10)

    listed.assert_addresses_say_the_same(drawn_filters, 23)


def test_a_walk_that_ends_says_so_and_its_cursor_goes_on():
    record(100)
    AuditEntry.objects.filter(seq=3).update(verb="once")

    first = listing.newest(AuditFilters(verb=("once",)), walk=40)
    second = listing.newest(AuditFilters(verb=("once",)), before=first.after, walk=40)
    last = listing.newest(AuditFilters(verb=("once",)), before=second.after, walk=40)

    assert ([first.items, second.items], first.looked_at) == ([[], []], 40)
    assert ([entry.seq for entry in last.items], last.after, last.looked_at) == ([3], None, 0)


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="plans of small tables are SQLite's to tell")
@pytest.mark.parametrize(
    ("filters", "index"),
    [
        (AuditFilters(), "auditentry_1 (seq"),
        (AuditFilters(verb=("decide",)), "auditentry_1 (seq"),
        (AuditFilters(who=("user:maria",), verb=("decide",)), "audit_by_principal"),
        (AuditFilters(target="user:maria", q="receipt"), "audit_by_target"),
        (AuditFilters(who=("user:maria",), target="user:gone"), "audit_by_target"),
    ],
)
def test_a_page_is_read_along_an_index_and_never_sorted(filters, index):
    record(100)
    with CaptureQueriesContext(connection) as captured:
        listing.newest(filters, walk=30)

    plans = []
    for query in captured.captured_queries:
        if "t.prev_hash" in query["sql"]:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}".replace("%", "%%"))
                plans += [row[3] for row in cursor.fetchall()]
    assert plans
    assert any(index in plan for plan in plans), plans
    assert not any("TEMP B-TREE" in plan for plan in plans), plans


@pytest.mark.parametrize(
    ("query", "field", "words"),
    [
        ("outcome=maybe", "outcome", "done or refused"), ("last=2y", "last", "15m or 1h"),
        ("from=yesterday", "from", "a date and time"), ("from=2026-02-02&to=2026-01-01", "to", "not be before From"),
        (f"target={'x' * 301}", "target", "300 characters"), (f"verb={'x' * 61}", "verb", "60 characters"),
        ("&".join(f"who=n{n}" for n in range(21)), "who", "20 values"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_by_its_name(query, field, words):
    with pytest.raises(Invalid) as raised:
        listed.read_filters(AuditFilters, query)

    assert raised.value.field == field
    assert words in raised.value.message


@pytest.mark.parametrize("cursor", ["x", "1.2", "-1", "9" * 19, "١"])
def test_a_cursor_of_nobodys_is_refused(cursor):
    with pytest.raises(Invalid, match="cursor"):
        listing.position_of(cursor)


def test_a_bare_name_is_a_persons():
    assert listed.read_filters(AuditFilters, "who=maria&who=system&who=token:x").who == (
        "user:maria",
        "system",
        "token:x",
    )


def test_the_export_is_the_filtered_list():
    record(120)
    dice = random.Random(24)
    for filters in [AuditFilters(), *(drawn_filters(dice) for _ in range(4))]:
        wanted = brute(filters)

        lines = [json.loads(line) for line in listed.exported(EXPORT, filters, "jsonl").splitlines()]
        table = listed.table(EXPORT, filters)

        assert [line["seq"] for line in lines] == wanted
        assert [int(line["seq"]) for line in table] == wanted
        assert [line["hash"] for line in table] == [line["hash"] for line in lines]


@pytest.mark.parametrize("begins", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1", "\u200b=1"])
def test_no_cell_is_a_formula_or_has_what_cannot_be_seen(begins):
    with write_transaction():
        chain.add_entry(principals.SYSTEM, begins, begins, reason=f"{begins}HYPERLINK()", correlation={begins: begins})

    listed.assert_plain(listed.table(EXPORT, AuditFilters())[0].values())


def test_what_looks_like_a_password_leaves_neither_by_the_list_nor_by_a_file():
    with write_transaction():
        chain.add_entry(
            principals.SYSTEM, "note", "x", reason="password=hunter2hunter2", correlation={"api_key": "abcdefgh"}
        )

    for form in ("csv", "jsonl"):
        assert "hunter2" not in listed.exported(EXPORT, AuditFilters(), form)
        assert "abcdefgh" not in listed.exported(EXPORT, AuditFilters(), form)
