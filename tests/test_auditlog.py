"""The list of audit entries: filters find what a look at every entry finds, page by page; export is that list."""

import csv
import io
import json
import random

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from conversations import audit, exports, principals
from conversations.auditlog import export, filters, listing, window
from conversations.auditlog.filters import Filters
from conversations.errors import Invalid
from conversations.log.writing import writing
from conversations.models import AuditEntry
from tests.auditlog import BEGAN, STEP_US, brute, drawn_filters, record

pytestmark = pytest.mark.django_db
DRAWN = 50  # combinations of filters


def found(asked: Filters, *, limit: int = 50, walk: int = listing.WALK) -> list[int]:
    """Read all pages; answer the seqs."""
    seqs, before = [], None
    for _ in range(5_000):
        page = listing.newest(asked, before=before, limit=limit, walk=walk)
        seqs += [entry.seq for entry in page.entries]
        if page.after is None:
            return seqs
        before = page.after
    raise AssertionError("the pages never end")


def read(query: str) -> Filters:
    """Read an address's query."""
    return filters.strictly(dict(QueryDict(query).lists()))


def test_filters_find_what_a_look_at_every_entry_finds():
    record(250)
    dice = random.Random(21)
    kinds = dict.fromkeys(("empty", "some"), 0)

    for _ in range(DRAWN):
        asked = drawn_filters(dice)
        wanted = brute(asked)
        kinds["some" if wanted else "empty"] += 1

        assert found(asked) == wanted, asked
        assert found(asked, limit=7, walk=dice.choice([25, 60])) == wanted, asked  # cut short, and gone on

    assert min(kinds.values()) > 5, kinds


def test_a_time_range_is_found_in_a_long_log_by_a_few_looks(monkeypatch):
    record(400)
    monkeypatch.setattr(window, "SMALL", 40)
    monkeypatch.setattr(window, "SAMPLES", 10)
    monkeypatch.setattr(window, "SLACK_US", 3 * STEP_US)
    dice = random.Random(22)
    for _ in range(15):
        since, until = sorted(BEGAN + dice.randint(-5, 405) * STEP_US for _ in range(2))
        wanted = brute(Filters(since=since, until=until))

        assert found(Filters(since=since, until=until), walk=60) == wanted
        if wanted:
            assert 0 <= min(wanted) - 1 - window.floor(400, since) <= 12
            assert 0 <= window.ceiling(400, until) - 1 - max(wanted) <= 12


def test_pages_neither_repeat_nor_skip_while_entries_are_added():
    record(60)
    asked, seen, before = Filters(who=("user:maria",)), [], None
    wanted = brute(asked)

    while True:
        page = listing.newest(asked, before=before, limit=2)
        seen += [entry.seq for entry in page.entries]
        record(5, seed=len(seen))
        if page.after is None:
            break
        before = page.after

    assert seen == wanted
    assert len(brute(asked)) > len(wanted)


def test_an_address_says_the_same_filters_again():
    record(10)
    dice = random.Random(23)
    for _ in range(100):
        asked = drawn_filters(dice)

        assert read(asked.query) == asked


def test_a_walk_that_ends_says_so_and_its_cursor_goes_on():
    record(100)
    AuditEntry.objects.filter(seq=3).update(verb="once")

    first = listing.newest(Filters(verb=("once",)), walk=40)
    second = listing.newest(Filters(verb=("once",)), before=first.after, walk=40)
    last = listing.newest(Filters(verb=("once",)), before=second.after, walk=40)

    assert ([first.entries, second.entries], first.looked_at) == ([[], []], 40)
    assert ([entry.seq for entry in last.entries], last.after, last.looked_at) == ([3], None, 0)


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="plans of small tables are SQLite's to tell")
@pytest.mark.parametrize(
    ("asked", "index"),
    [
        (Filters(), "auditentry_1 (seq"),
        (Filters(verb=("decide",)), "auditentry_1 (seq"),
        (Filters(who=("user:maria",), verb=("decide",)), "audit_by_principal"),
        (Filters(target="user:maria", q="receipt"), "audit_by_target"),
        (Filters(who=("user:maria",), target="user:gone"), "audit_by_target"),
    ],
)
def test_a_page_is_read_along_an_index_and_never_sorted(asked, index):
    record(100)
    with CaptureQueriesContext(connection) as captured:
        listing.newest(asked, walk=30)

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
        ("from=yesterday", "from", "a day and time"), ("from=2026-02-02&to=2026-01-01", "to", "before it begins"),
        (f"target={'x' * 301}", "target", "300 characters"), (f"verb={'x' * 61}", "verb", "60 characters"),
        ("&".join(f"who=n{n}" for n in range(21)), "who", "20 values"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_by_its_name(query, field, words):
    with pytest.raises(Invalid) as raised:
        read(query)

    assert raised.value.field == field
    assert words in raised.value.message


@pytest.mark.parametrize("cursor", ["x", "1.2", "-1", "9" * 19, "١"])
def test_a_cursor_of_nobodys_is_refused(cursor):
    with pytest.raises(Invalid, match="cursor"):
        listing.seq_of(cursor)


def test_a_bare_name_is_a_persons():
    assert read("who=maria&who=system&who=token:x").who == ("user:maria", "system", "token:x")


def test_the_export_is_the_filtered_list():
    record(120)
    dice = random.Random(24)
    for asked in [Filters(), *(drawn_filters(dice) for _ in range(4))]:
        wanted = brute(asked)

        lines = [json.loads(line) for line in exported(asked, "jsonl").splitlines()]
        table = list(csv.DictReader(io.StringIO(exported(asked, "csv"), newline="")))

        assert [line["seq"] for line in lines] == wanted
        assert [int(line["seq"]) for line in table] == wanted
        assert [line["hash"] for line in table] == [line["hash"] for line in lines]


def exported(asked: Filters, form: exports.Form) -> str:
    """Put the pieces together, as the page does."""
    pieces, before = [exports.head(form, export.COLUMNS)], None
    while True:
        piece, before = export.page(asked, form, before)
        pieces.append(piece)
        if before is None:
            return b"".join(pieces).decode()


@pytest.mark.parametrize("begins", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝1", "\u200b=1"])
def test_no_cell_is_a_formula_or_has_what_cannot_be_seen(begins):
    with writing():
        audit.enter(principals.SYSTEM, begins, begins, reason=f"{begins}HYPERLINK()", correlation={begins: begins})

    row = next(csv.DictReader(io.StringIO(exported(Filters(), "csv"), newline="")))

    for text in row.values():
        assert not text.lstrip().startswith(exports.FORMULAS), text
        assert not any((ord(c) < 32 and c != "\n") or c == "\u200b" for c in text), text


def test_what_looks_like_a_password_leaves_neither_by_the_list_nor_by_a_file():
    with writing():
        audit.enter(
            principals.SYSTEM, "note", "x", reason="password=hunter2hunter2", correlation={"api_key": "abcdefgh"}
        )

    for form in ("csv", "jsonl"):
        assert "hunter2" not in exported(Filters(), form)
        assert "abcdefgh" not in exported(Filters(), form)
