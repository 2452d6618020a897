"""What is found: words, phrases, beginnings, in any script; by conversation, kind, sender and time; page by page."""

import json
from datetime import UTC, datetime

import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations import search
from conversations.core.errors import Invalid
from conversations.events.log import Stored
from conversations.models import Event
from conversations.search import finder, query, searchable_text
from tests.support.event_types import EXAMPLES
from tests.support.growth import ratio, read_numbers
from tests.support.hostile import payloads
from tests.support.searching import catch_up, say, search_all
from tests.support.tiers import rounds

pytestmark = pytest.mark.django_db


def test_words_phrases_and_beginnings_are_found_newest_first():
    say("desk", "The refund was filed for the wrong person", "No refund today", "The person was wrong")
    catch_up()

    assert search_all("refund") == [("desk", 2), ("desk", 1)]
    assert search_all("wrong person") == [("desk", 3), ("desk", 1)]
    assert search_all('"wrong person"') == [("desk", 1)]
    assert search_all('"for the wr*"') == []
    assert search_all('"for the wr"*') == [("desk", 1)]
    assert search_all("ref*") == [("desk", 2), ("desk", 1)]
    assert search_all("REFUND TODAY") == [("desk", 2)]
    assert search_all("refu") == []
    assert search_all("refund nowhere") == []


SCRIPTS = {
    "Der Läufer aß in der Straße": ("laufer", "STRASSE", "ass", "läu*"),
    "Ο Οδυσσέας γύρισε": ("οδυσσεας", "ΓΥΡΙΣΕ"),
    "Она живёт в Москве": ("живет", "москв*"),
    "كُتِبَ هَذَا الكِتَابُ أمس": ("كتب", "الكتاب", "امس", '"هذا الكتاب"'),
    "בְּרֵאשִׁית ברא": ("בראשית", "ברא"),
    "सूचना का अधिकार": ("सूचना", "अधिका*"),
    "我们需要给错误的人退款。": ("退款", "错误", "错误的人", "退", '"给错误"'),
    "東京タワーへ行きました": ("東京", "タワー", "京タ", "行きました", "東"),
    "환불을 요청했습니다": ("환불", "요청", "환불을"),
    "ขอเงินคืนเพราะผิดคน": ("เงินคืน", "ผิดคน"),
    "ＦＵＬＬ－ＷＩＤＴＨ ﬁle №５": ("full", "file", "width", '"full width"'),
    "it said re\u200bfund and re\u0301sume\u0301": ("refund", "resume", "résumé"),
    "call file_refund(order-77)": ("file_refund", "refund", "order-77", "77"),
}


@pytest.mark.parametrize("text", SCRIPTS)
def test_every_script_is_found_by_what_a_person_would_type(text):
    say("scripts", text, "something else")
    catch_up()

    for q in SCRIPTS[text]:
        assert search_all(q) == [("scripts", 1)], q


def test_part_of_a_word_is_not_found_where_words_have_spaces():
    say("desk", "refunded", "东方红")
    catch_up()

    assert search_all("refund") == search_all("und*") == search_all("红东") == []
    assert search_all("方红") == [("desk", 2)]


def test_conversation_kind_sender_and_time_narrow_it():
    say("a", "refund", {"event": "output", "agent": "Clerk", "text": "refund done"})
    say("b", {"event": "tool_step", "name": "file_refund", "args": {"who": "Ann"}, "agent": "Clerk", "status": "start"})
    say("b", {"event": "tool_step", "name": "file_refund", "agent": "Clerk", "error": "no such person"})
    catch_up()

    assert search_all("refund", conversation="a") == [("a", 2), ("a", 1)]
    assert search_all("refund", conversation="nowhere") == []
    assert search_all("refund", kind="tool_step") == [("b", 2), ("b", 1)]
    assert search_all(kind="error") == [("b", 2)]
    assert (
        search_all("refund", sender="Clerk") == search_all("refund", sender="clerk") == [("b", 2), ("b", 1), ("a", 2)]
    )
    assert search_all("refund", sender="agent:Triage") == [("a", 1)]
    assert search_all(sender="robot") == search_all(sender="token:robot") == [("b", 2), ("b", 1), ("a", 2), ("a", 1)]
    assert search_all("ann who") == [("b", 1)]


@pytest.mark.parametrize("day", ["20261121", "2026-W47-6", "2026-11-21"])
def test_the_last_day_is_included_however_it_is_written(day):
    assert query.read("x", until=day).until == query.read("x", since="2026-11-22").since


def test_time_is_exact_to_the_event():
    for number in range(6):
        say("clock", f"refund {number}")
    moments = [datetime(2026, 11, 1 + day, 12, tzinfo=UTC) for day in range(6)]
    for seq, moment in enumerate(moments, 1):
        Event.objects.filter(seq=seq).update(at=round(moment.timestamp() * 1e6))
    catch_up()

    assert [seq for _, seq in search_all("refund", since="2026-11-03", until="2026-11-04")] == [4, 3]
    assert [seq for _, seq in search_all("refund", since="2026-11-05T12:00:00Z")] == [6, 5]
    assert [seq for _, seq in search_all("refund", until="2026-11-01T13:00+01:00")] == []
    assert [seq for _, seq in search_all("refund", until="2026-11-01")] == [1]


def test_pages_neither_repeat_nor_skip_while_more_is_said():
    say("long", *[f"refund {number}" for number in range(25)])
    catch_up()
    first = search.find(search.read("refund"), limit=10)
    say("long", "refund once more")
    catch_up()

    second = search.find(search.read("refund"), before=first.cursor, limit=10)
    third = search.find(search.read("refund"), before=second.cursor, limit=10)

    assert [hit.event.seq for page in (first, second, third) for hit in page.hits] == list(range(25, 0, -1))
    assert third.cursor is None


@pytest.mark.parametrize("rare", [1, 3, 17, 50])
def test_every_hit_is_found_however_far_apart_they_are(monkeypatch, rare):
    monkeypatch.setattr("conversations.search.sqlite.FIRST", 4)
    monkeypatch.setattr("conversations.search.postgresql.Postgres.block", 1)
    monkeypatch.setattr("conversations.search.postgresql.FIRST", 2)
    monkeypatch.setattr("conversations.search.postgresql.MAX_ASKED", 3)
    texts = ["refund zebra" if number % rare == 0 else "refund" for number in range(90)]
    say("long", *texts)
    catch_up()

    pages, before = [], ""
    while before is not None:
        pages.append(search.find(search.read("refund zebra"), before=before, limit=4))
        before = pages[-1].cursor

    seqs = [hit.event.seq for page in pages for hit in page.hits]
    assert seqs == [seq for seq in range(90, 0, -1) if "zebra" in texts[seq - 1]]
    assert all(len(page.hits) == 4 for page in pages[:-1])


def test_a_query_of_many_words_ends(monkeypatch):
    monkeypatch.setattr("conversations.search.postgresql.FIRST", 2)
    words = [f"word{number}" for number in range(16)]
    say("long", " ".join(words), "word1")
    catch_up()

    assert [seq for _, seq in search_all(" ".join(words))] == [1]


def next_event_id(id_):
    """Let the next event get this id: where earlier events were deleted, the record does not begin with 1."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("DELETE FROM sqlite_sequence WHERE name='conversations_event'")
            cursor.execute("INSERT INTO sqlite_sequence(name,seq) VALUES('conversations_event',%s)", [id_ - 1])
        else:
            cursor.execute("SELECT setval(pg_get_serial_sequence('conversations_event','id'),%s,false)", [id_])


@pytest.mark.parametrize("first_id", [1, 2_030, 2_047, 2_048, 2_050, 10_000])
def test_what_takes_too_long_says_how_far_it_looked(monkeypatch, first_id):
    next_event_id(first_id)
    monkeypatch.setattr("conversations.search.sqlite.FIRST", 4)
    monkeypatch.setattr("conversations.search.postgresql.Postgres.block", 2)
    monkeypatch.setattr("conversations.search.postgresql.FIRST", 3)
    say("long", *["left" if number % 2 else "right" for number in range(40)])
    catch_up()
    monkeypatch.setattr("conversations.search.finder.PATIENCE", -1)

    pages, before = [], ""
    while before is not None:
        pages.append(search.find(search.read("left right"), before=before, limit=10))
        before = pages[-1].cursor

    assert Event.objects.earliest("pk").pk == first_id
    assert len(pages) > 1
    assert not any(page.hits for page in pages)
    assert all(page.looked_to for page in pages[:-1])
    assert pages[-1].looked_to is None


def test_a_beginning_of_too_many_words_asks_for_another_letter():
    say("words", " ".join(f"co{number:04}" for number in range(501)), "coat")
    catch_up()

    with pytest.raises(Invalid, match="add a letter"):
        search_all("co*")
    assert search_all("coa*") == [("words", 2)]
    assert search_all("co00*") == [("words", 1)]


MALFORMED = [
    *('"', '""', '"open', "*", "**", "a**", '"*"', "AND", "OR NOT NEAR", "NEAR(a b, 2)", "words : x", "{words} : x"),
    *("a AND", "(a", "a)", "^a", "a:b", "-a", "a -b", "'", "''; DROP TABLE x; --", "\\", "a \\ b", "a & | ! b", "<->"),
    *(":*", "a:*", "\0", "\ud800", "\U0010ffff*", "\ud7ff*", "e\u0301*", "\u200b", "ﷺ*", "a" * 5000, "a " * 500),
    *(":b1", ".水", "c1", "%", "_", "%s", "𝔘𝔫𝔦*", "🙂", "١٢٣*", "½*"),
]


@pytest.mark.parametrize("q", MALFORMED)
def test_no_text_is_a_mistake_of_the_database(q):
    say("desk", "a b c", q or "x")
    catch_up()

    assert isinstance(search_all(q, kind="message"), list)


@pytest.mark.parametrize("field", ["since", "until"])
@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "9999-99-99", "1", "\ud800", "0001-01-01", "9999-12-31"])
def test_a_time_that_is_none_is_told(field, text):
    with pytest.raises(Invalid) as wrong:
        search.read("x", **{field: text})
    assert wrong.value.field == field


@pytest.mark.slow
@settings(max_examples=rounds(25, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(q=st.text(max_size=40), kind=st.text(max_size=8), sender=st.text(max_size=8), conversation=st.text(max_size=8))
def test_any_text_can_be_asked(q, kind, sender, conversation):
    search_all(q, kind=kind, sender=sender, conversation=conversation)


def test_hostile_texts_are_found_by_their_own_words():
    texts_ = [text for text in payloads(120) if len(text) < 400]
    say("hostile", *texts_)
    catch_up()

    for seq, text in enumerate(texts_, 1):
        query = search.read(f'"{text.replace(chr(34), " ")}"')
        if query.terms and len(query.terms[0].words) < 64 and '"' not in text:
            assert ("hostile", seq) in search_all(f'"{text}"'), text


def test_every_kind_says_something_but_those_that_only_hold_together():
    silent = {
        kind for kind, bodies in EXAMPLES.items() if not any(searchable_text.parts_of(kind, body) for body in bodies)
    }

    assert {"token", "model.turn", "run.started"} <= silent
    assert not silent & {"message", "output", "tool_step", "conversation.opened", "run.failed", "approval.requested"}


@pytest.mark.parametrize(
    ("words", "q", "line"),
    [
        ("**The** `refund` is [filed](https://here.example/a)", "refund", "The refund is filed"),
        ("See [it](https://here.example/a)", "example", "See [it](https://here.example/a)"),
    ],
)
def test_what_was_said_is_cut_out_without_its_markdown(words, q, line):
    hit = search.SearchHit(1, "", Stored("c", 1, "message", 1, "a", None, None, None, json.dumps({"content": words})))

    ((excerpt,),) = search.of_hits([hit], search.read(q))

    assert excerpt.text == line
    assert [line[start:end] for start, end in excerpt.marks] == [q]


@pytest.mark.thorough
def test_a_page_of_long_events_is_cut_out_soon():
    words = "the of to and a in is it you that he was for on are with"
    body = json.dumps({"content": f"{words} " * 1_500})
    stored = Stored("c", 1, "message", 1, "token:robot", None, None, None, body)
    hits = [search.SearchHit(n, "", stored) for n in range(100)]

    cut = list(search.of_hits(hits, search.read(words)))

    assert ratio(lambda: list(search.of_hits(hits, search.read(words))), read_numbers, below=80) < 80
    assert all(excerpt.marks for some in cut for excerpt in some)
    assert len(cut) == 100


def test_what_is_found_is_read_to_a_bound_and_goes_on_from_there(monkeypatch):
    say("desk", *[f"refund {n} " + "x" * 1000 for n in range(10)])
    catch_up()
    monkeypatch.setattr(finder, "MAX_BODIES", 3_000)

    seqs, before = [], ""
    while before is not None:
        page = search.find(search.read("refund"), before=before, limit=7)
        assert 1 <= len(page.hits) <= 3
        seqs += [hit.event.seq for hit in page.hits]
        before = page.cursor

    assert seqs == list(range(10, 0, -1))
