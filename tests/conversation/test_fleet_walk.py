"""The filters of the conversation list: they find what a scan finds, in order, and never read all conversations."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.conversation import conversation_list, list_query
from conversations.events import log
from conversations.events.log.import_staging import StagedBatch
from conversations.models import Approval, Conversation, Participant, Run, User
from conversations.search import title_index
from tests.support.cast import client_of, person
from tests.support.growth import sqlite_steps
from tests.support.searching import catch_up, say
from tests.support.tiers import rounds

pytestmark = [pytest.mark.django_db, pytest.mark.each_form]  # its SQL is made of the filters
WORDS = (
    "park",
    "bench",
    "PARK",
    "ark",
    "sure_",
    "100%",
    "c1",
    "退款",
    "退",
    "ärger",
    "ÉMILE",
    "СОЮЗ",
    "zz",
    "nowhere",
    "line 7",
    "swing bench",
    "once",
    "new",
)
TITLES = ("Park benches", "A swing", "100% sure_thing", "关于退款的问题", "Ärger, émile", "союз", "")
NAMES = ("Triage", "Rosa", "zoe", "Seldom", "nobody")
STATES = ("", "open", "paused", "person", "mine", "waiting")


@pytest.fixture
def small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a small list be too long to be read whole."""
    monkeypatch.setattr(list_query, "FIRST", 5)
    monkeypatch.setattr(list_query, "BOUND", dict.fromkeys(list_query.BOUND, 13))
    monkeypatch.setattr(list_query, "SCATTERED", 8)
    monkeypatch.setattr(list_query, "MAX_BY_INDEX", 12)


def store(count: int, reader: User, seed: int = 3) -> None:
    """Store conversations as the log would have folded them; each moment is that of two or three."""
    dice = random.Random(seed)
    for number in range(count):
        made = Conversation.objects.create(
            key=f"c{number}", last_at=1000 + number // 3, is_staged=number % 17 == 5, head_seq=1,
            title=dice.choice(TITLES),
            last_line=dice.choice([f"line {number}", "the park", "bench", "zz" if number % 40 == 1 else "nothing"]),
            state=dice.choice(["open", "open", "open", "paused"]),
            owner=dice.choice(["", "", "", "", "user:tomas", f"user:{reader.username}"]),
        )  # fmt: skip
        for name in ("agent:Triage", "Triage", "Rosa", "user:zoe", *(["agent:Seldom"] if number % 23 == 2 else [])):
            if dice.random() < 0.5:
                named = dice.random() < 0.4
                Participant.objects.create(conversation=made, name=name, kind="agent", is_named=named)
        if dice.random() < 0.2:
            status = dice.choice(["waiting", "done"])
            run = Run.objects.create(id=f"r{number}", conversation=made, status=status, input_seq=1, queued_seq=1)
            Approval.objects.create(
                id=f"a{number}", conversation=made, tool_call=f"t{number}", run=run.id, asked_seq=1, asked_at=1
            )


def scan(reader: User, *, q: str = "", participant: str = "", state: str = "", agent: str = "") -> list[str]:
    """Return the keys that the filters leave, newest first, by a look at every conversation."""
    fits: list[Callable[[Conversation], bool]] = [
        lambda row: all(any(word in text for text in _texts(row)) for word in q.casefold().split()),
        lambda row: not participant or bool(_names(row) & {participant, f"agent:{participant}", f"user:{participant}"}),
        lambda row: not agent or bool(_names(row, is_named=True) & {agent, f"agent:{agent}"}),
        lambda row: not state or _is(row, state, f"user:{reader.username}"),
    ]
    matching = [row for row in Conversation.objects.filter(is_staged=False) if all(fit(row) for fit in fits)]
    return [row.key for row in sorted(matching, key=lambda row: (row.last_at, row.pk), reverse=True)]


def _texts(row: Conversation) -> list[str]:
    return [text.casefold() for text in (row.title, row.key, row.last_line)]


def _names(row: Conversation, **conditions: Any) -> set[str]:
    return set(row.participants.filter(**conditions).values_list("name", flat=True))


def _is(row: Conversation, state: str, me: str) -> bool:
    if state == "waiting":
        pending = Approval.objects.filter(conversation=row, status="pending")
        return any(Run.objects.get(id=approval.run).status == "waiting" for approval in pending)
    if state in ("mine", "person"):
        return row.owner == me if state == "mine" else row.owner != ""
    return row.state == state and row.owner == ""


def pages(limit: int = 60, **filters: Any) -> list[str]:
    """List page by page; return the keys."""
    keys, before = [], ""
    for _ in range(1000):
        page = conversation_list.newest_conversations(before=before, limit=limit, **filters)
        keys += [row.key for row in page.rows]
        if page.cursor is None:
            return keys
        assert page.rows or page.looked_to is not None
        before = page.cursor
    raise AssertionError("the pages never end")


@pytest.fixture
def stored(small_bounds: None) -> User:
    """Such a list, half of it not indexed yet; who looks."""
    reader = person("maria", "viewer")
    store(70, reader)
    catch_up()
    store_more(reader)
    return reader


def store_more(reader: User) -> None:
    """Let something be said since the index was brought up to date."""
    say("c3", "the park, once more")
    say("c9", "nothing else")
    say("new", "a bench")


@pytest.mark.slow
@settings(max_examples=rounds(30, 120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    q=st.sampled_from(("", *WORDS)), participant=st.sampled_from(("", *NAMES)), state=st.sampled_from(STATES),
    agent=st.sampled_from(("", "", "Triage", "Seldom", "nobody")), limit=st.sampled_from([1, 4, 60]),
)  # fmt: skip
def test_any_filters_find_what_a_scan_finds(stored, q, participant, state, agent, limit):
    filters = {"q": q, "participant": participant, "state": state, "agent": agent}

    assert pages(limit, reader=stored, **filters) == scan(stored, **filters)


@pytest.mark.slow
def test_what_is_rare_is_whole_on_the_first_page(stored):
    page = conversation_list.newest_conversations(q="退款", participant="Seldom", limit=60)

    assert page.looked_to is page.cursor is None


@pytest.mark.skipif(connection.vendor == "sqlite", reason="SQLite reads no more than are asked for")
def test_words_that_very_many_have_are_looked_up_in_no_index(small_bounds, monkeypatch):
    for number in range(40):
        say(f"c{number}", "unmistakable" if number == 3 else "refund")
    catch_up()
    monkeypatch.setattr(title_index, "MAX_READ", 20)
    monkeypatch.setattr(title_index, "_counted", (-title_index.STATISTICS_FOR, frozenset()))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE conversations_captiontext")

    with CaptureQueriesContext(connection) as queries:
        assert title_index.find(["refund"], 12) is None

    assert not [query for query in queries.captured_queries if "@@" in query["sql"]]
    assert title_index.find(["unmistakable"], 12) == [Conversation.objects.get(key="c3").pk]
    assert pages(q="refund") == [f"c{number}" for number in range(39, -1, -1) if number != 3]


def test_an_import_is_in_the_list_from_its_end_on(small_bounds):
    batch = StagedBatch()
    say(batch.stage("brought"), "a bench", chained_as=batch.chained_as)
    catch_up()
    assert pages(q="bench") == pages(q="brought") == []

    batch.publish()

    assert pages(q="bench") == pages(q="brough") == ["brought"]
    catch_up()
    assert pages(q="bench") == pages(q="brough") == ["brought"]


def test_a_caption_that_was_replaced_is_found_no_more(small_bounds):
    for number in range(30):
        say(f"c{number}", "quiet")
    say("c3", "unmistakable")
    catch_up()
    say("c3", "something else")
    catch_up()

    assert title_index.find(["unmistakable"], 12) == []
    assert title_index.find(["something"], 12) == [Conversation.objects.get(key="c3").pk]


def test_a_caption_is_forgotten_with_its_events(small_bounds):
    say("c", "unmistakable")
    catch_up()
    conversation = Conversation.objects.get(key="c").pk

    with log.write_transaction(), connection.cursor() as cursor:
        title_index.remove(cursor, [conversation, conversation + 1])

    assert title_index.find(["unmistakable"], 12) == []


@pytest.mark.parametrize(
    "text", ["'", '"', "a'b\"c\\", "NULL*", "^ab", "\u0130stanbul", "ß" * 3, "\ue041bc", "::x", "a&b|c"]
)
def test_any_signs_are_looked_for_as_they_are(text, small_bounds):
    for number in range(30):
        say(f"c{number}", "quiet")
    say("c0", f"begins {text} ends", "later")
    Conversation.objects.filter(key="c0").update(title=f"x{text}y")
    catch_up()

    assert pages(q=text) == ["c0"]


@pytest.mark.thorough
@pytest.mark.sqlite("counts the steps of its virtual machine")
@pytest.mark.parametrize(
    "filters",
    [
        {"q": "nowhere-at-all"}, {"q": "unmistakable"}, {"participant": "nobody"}, {"participant": "Seldom"},
        {"agent": "Seldom"}, {"agent": "Triage", "q": "unmistakable"}, {"state": "person"}, {"state": "paused"},
        {"state": "waiting"}, {"q": "zq"}, {"q": "nothing", "state": "mine"},
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_takes_as_long_however_many_conversations_there_are(filters, small_bounds):
    reader = person("maria", "viewer")
    steps = []
    for begin, end in ((0, 600), (600, 2400)):
        made = [Conversation(key=f"c{n}", last_at=n, title="Park", last_line="nothing") for n in range(begin, end)]
        made = Conversation.objects.bulk_create(made)
        Participant.objects.bulk_create(
            Participant(conversation=row, name="agent:Seldom", kind="agent") for row in made
        )
        Run.objects.bulk_create(
            Run(id=f"r{row.pk}", conversation=row, status="done", input_seq=1, queued_seq=1) for row in made
        )
        if not begin:
            Conversation.objects.filter(key="c1").update(title="unmistakable")
        with connection.cursor() as cursor, log.write_transaction():
            title_index.store(cursor, {row.pk: title_index.indexed_text(row.key, row.title, "nothing") for row in made})
        steps.append(10 * sqlite_steps(lambda: conversation_list.newest_conversations(reader=reader, **filters)))

    assert steps[1] - steps[0] < 1800, steps  # not one more for each conversation that was added


def test_a_page_that_ends_at_the_bound_says_so_and_goes_on(stored, team):
    browser = client_of(team["viewer"])

    page = browser.get("/", {"q": "zz"}).content.decode()
    answer = browser.get("/api/v1/conversations", {"q": "zz"}).json()

    assert "There may be more further back" in page
    assert "Search further back" in page
    assert "No conversation matches" not in page
    assert answer["cursor"]
