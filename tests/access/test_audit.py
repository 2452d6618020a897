"""The audit chain: made right, found broken, refusals kept, floods counted."""

import hashlib
import json
import threading

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.access.action_context import audited_action
from conversations.access.audit import chain, refusal_counter
from conversations.core import principals
from conversations.core.errors import NotAllowed
from conversations.core.write_transaction import write_transaction
from conversations.events import log, verify_chains
from conversations.events.verify_chains import ChainReport
from conversations.models import AuditEntry, AuditHead, Conversation, Event, User
from tests.support.databases import IS_POSTGRESQL

MARIA = principals.user_principal("maria")
pytestmark = pytest.mark.django_db


def first_fault(verdict):
    return verdict.first_bad, verdict.why


def fill(count):
    with write_transaction():
        for n in range(count):
            chain.add_entry(MARIA, "look", f"thing:{n}", reason="testing")


def test_an_entry_hashes_every_column_and_the_hash_before():
    with write_transaction():
        entry = chain.add_entry(
            MARIA,
            "look",
            "thing:1",
            reason="why",
            before="b" * 64,
            after="a" * 64,
            acting_as="agent:A",
            correlation={"x": 1},
        )

    first = hashlib.sha256(b"audit").hexdigest()
    personal = r'["user:maria","agent:A","thing:1","why","{\"x\":1}"]'
    digest = hashlib.sha256(entry.salt + personal.encode()).hexdigest()
    columns = ["look", "b" * 64, "a" * 64, "done", digest]
    by_hand = hashlib.sha256(
        "\0".join(["switchboard/2 audit", first, "1", str(entry.at), *columns]).encode()
    ).hexdigest()
    assert (entry.seq, entry.prev_hash, entry.hash) == (1, first, by_hand)


def test_an_untouched_chain_is_whole():
    fill(5)

    assert chain.verify() == ChainReport(5, ok=True)


def test_an_empty_chain_is_whole():
    assert chain.verify() == ChainReport(0, ok=True)


@pytest.mark.parametrize(
    "column", ["at", "principal", "acting_as", "verb", "target", "before", "after", "reason", "outcome", "correlation"]
)
def test_a_changed_column_is_found(column):
    fill(5)

    AuditEntry.objects.filter(seq=3).update(**{column: 7 if column == "at" else "x"})

    verdict = chain.verify()
    assert (verdict.ok, verdict.first_bad, verdict.count) == (False, "audit entry 3", 2)


def test_a_changed_entry_with_its_own_hash_made_anew_is_found_at_the_next():
    fill(5)
    entry = AuditEntry.objects.get(seq=3)
    entry.target = "thing:other"
    entry.digest = chain.personal_digest(entry.salt, entry)
    entry.hash = chain.link(entry.prev_hash, entry)
    entry.save()

    assert chain.verify().first_bad == "audit entry 4"


def test_a_deleted_entry_is_found():
    fill(5)

    AuditEntry.objects.filter(seq=3).delete()

    assert first_fault(chain.verify()) == ("audit entry 3", "missing")


def test_a_cut_tail_is_found():
    fill(5)

    AuditEntry.objects.filter(seq=5).delete()

    assert first_fault(chain.verify()) == ("audit entry 5", "missing: the head counts 5 entries")


def test_entries_swapped_are_found():
    fill(5)
    AuditEntry.objects.filter(seq=2).update(seq=99)
    AuditEntry.objects.filter(seq=3).update(seq=2)
    AuditEntry.objects.filter(seq=99).update(seq=3)

    assert chain.verify().first_bad == "audit entry 2"


def test_an_entry_put_behind_the_head_is_found():
    fill(3)
    AuditHead.objects.update(seq=2, hash=AuditEntry.objects.get(seq=2).hash)

    assert first_fault(chain.verify()) == ("audit entry 3", "after the audit head, which is 2")


def test_an_entry_belongs_into_a_transaction():
    with pytest.raises(RuntimeError, match="inside write_transaction"):
        chain.add_entry(MARIA, "look", "thing:1")


def test_an_entry_falls_with_its_action():
    def act_and_fail():
        with write_transaction():
            chain.add_entry(MARIA, "look", "thing:1")
            raise NotAllowed("no longer")

    with pytest.raises(NotAllowed):
        act_and_fail()

    assert chain.verify() == ChainReport(0, ok=True)


def test_what_a_column_cannot_hold_is_replaced():
    with write_transaction():
        entry = chain.add_entry(MARIA, "look", "a\0b\udc80" + "x" * 400, reason="r" * 3000)

    assert entry.target.startswith("a\N{REPLACEMENT CHARACTER}b?xx")
    assert (len(entry.target), len(entry.reason)) == (300, 2000)
    assert chain.verify().ok


@pytest.mark.parametrize(
    ("facts", "left"),
    [
        ({"events": {"a": list(range(1_000_000, 1_000_600))}, "field": ""}, "… 344 more"),
        ({"events": {f"conversation {n}": [n] for n in range(300)}}, "more"),
        ({"query": "q" * 5_000, "address": "192.0.2.7"}, "q…"),
        ({"calls": ["a" * 900] * 40}, "more"),
    ],
)
def test_facts_that_are_too_long_are_shortened_and_stay_json(facts, left):
    with write_transaction():
        entry = chain.add_entry(MARIA, "look", "thing:1", correlation=facts)

    assert len(entry.correlation) <= 4000
    assert json.loads(entry.correlation).keys() == facts.keys()
    assert left in entry.correlation
    assert chain.verify().ok


def test_a_refused_action_leaves_one_refusal_and_no_change(people):
    with pytest.raises(NotAllowed), audited_action(people["viewer"], "change", "thing:1", right="people"):
        User.objects.all().delete()

    entry = AuditEntry.objects.get()
    assert (entry.principal, entry.verb, entry.target, entry.outcome) == ("user:vera", "change", "thing:1", "refused")
    assert User.objects.filter(username="vera").exists()


def test_a_right_lost_inside_the_transaction_rolls_the_change_back(people):
    def act_and_lose_the_right():
        with audited_action(people["admin"], "change", "thing:1", right="people"):
            User.objects.update(is_active=False)
            raise NotAllowed("no longer")

    with pytest.raises(NotAllowed):
        act_and_lose_the_right()

    assert User.objects.filter(is_active=True).count() == len(people)
    assert AuditEntry.objects.get().reason == "no longer"


def test_circumstances_join_the_correlation():
    with chain.during(request="r1", address="10.0.0.1"), write_transaction():
        entry = chain.add_entry(MARIA, "look", "thing:1", correlation={"run": "x"})

    assert json.loads(entry.correlation) == {"address": "10.0.0.1", "request": "r1", "run": "x"}


@pytest.fixture
def no_windows():
    refusal_counter.flush(everything=True)
    yield
    refusal_counter._windows.clear()


@pytest.mark.usefixtures("no_windows")
def test_a_flood_of_anonymous_refusals_is_two_entries():
    for _ in range(500):
        refusal_counter.record_refusal("10.0.0.1", "use_token", "pages", reason="no such token")
    refusal_counter.flush(everything=True)

    times = [json.loads(entry.correlation)["times"] for entry in AuditEntry.objects.order_by("seq")]
    assert times == [1, 499]
    assert chain.verify().ok


@pytest.mark.usefixtures("no_windows")
def test_refusals_are_counted_by_address_verb_and_target():
    for address in ("10.0.0.1", "10.0.0.2"):
        for verb in ("use_token", "sign_in"):
            refusal_counter.record_refusal(address, verb, "pages", reason="no")

    assert AuditEntry.objects.filter(outcome="refused", principal="system").count() == 4


@pytest.mark.usefixtures("no_windows")
def test_many_addresses_share_one_count(monkeypatch):
    monkeypatch.setattr(refusal_counter, "LIMIT", 3)
    for n in range(10):
        refusal_counter.record_refusal(f"10.0.0.{n}", "use_token", "pages", reason="no")
    refusal_counter.flush(everything=True)

    facts = [json.loads(entry.correlation) for entry in AuditEntry.objects.order_by("seq")]
    assert [(fact["address"], fact["times"]) for fact in facts[3:]] == [("others", 1), ("others", 6)]


@pytest.mark.django_db(transaction=True)
def test_entries_of_many_threads_make_one_chain():
    def enter_many():
        fill(20)
        connection.close()

    threads = [threading.Thread(target=enter_many) for _ in range(5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert chain.verify() == ChainReport(100, ok=True)


def history(key="a", events=5):
    log.append([log.from_internal(key, {"event": "log", "id": f"{key}{n}", "text": "x"}, MARIA) for n in range(events)])
    return Conversation.objects.get(key=key)


def verify(capsys):
    """Run the command; return its exit code and what it said."""
    try:
        call_command("verify")
        code = 0
    except SystemExit as end:
        code = end.code
    return code, capsys.readouterr().out


def test_verify_walks_everything_and_says_how_much(capsys):
    history("a"), history("b")
    fill(2)

    assert verify(capsys) == (
        0,
        "2 audit entries are intact\n10 events are intact\nThe record has not been signed yet\n"
        "State and rights match the events and audit entries\n",
    )


def test_verify_fails_on_a_broken_audit_chain(capsys):
    fill(3)
    AuditEntry.objects.filter(seq=2).update(principal="user:tomas")

    code, words = verify(capsys)

    assert code == 1
    assert "audit entry 2: changed after it was written" in words


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"body": '{"event":"log","text":"y"}'}, "event 3: the body was changed"),
        ({"kind": "message"}, "event 3: changed after"),
        ({"at": 7}, "event 3: changed after"),
        ({"principal": "user:tomas"}, "event 3: changed after"),
        ({"event_id": "other"}, "event 3: changed after"),
        ({"digest": "0" * 64, "salt": None}, "event 3: the salt is missing"),
        ({"hash": "0" * 64}, "event 3: changed after"),
        ({"seq": 9}, "event 3: missing"),
    ],
)
def test_verify_names_the_first_bad_event(capsys, change, place):
    history("a"), history("b")
    Event.objects.filter(conversation__key="b", seq=3).update(**change)

    code, words = verify(capsys)

    assert code == 1
    assert f"conversation 'b', {place}" in words
    assert "(7 before it are intact)" in words


def test_verify_refuses_a_tombstone_that_no_event_names(capsys):
    conversation = history()
    Event.objects.filter(conversation=conversation, seq=2).update(body="{}", salt=None, erased_by="e1")

    code, words = verify(capsys)

    assert code == 1
    assert "event 2: the salt is missing" in words


@pytest.mark.parametrize(
    ("head", "place"),
    [
        ({"head_seq": 6}, "event 6: missing"),
        ({"head_seq": 4}, "event 4: the conversation's head has a different hash"),
        ({"head_hash": "0" * 64}, "event 5: the conversation's head has a different hash"),
    ],
)
def test_verify_compares_the_head(capsys, head, place):
    history()
    Conversation.objects.update(**head)

    assert place in verify(capsys)[1]


def test_verify_finds_an_event_beyond_the_head(capsys):
    conversation = history()
    hash_of_4 = Event.objects.get(conversation=conversation, seq=4).hash
    Conversation.objects.update(head_seq=4, head_hash=hash_of_4)

    assert "event 5: after the conversation's head" in verify(capsys)[1]


def test_verify_finds_events_without_a_conversation(capsys):
    history("a")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM conversations_participant")
        cursor.execute("DELETE FROM conversations_conversation")

    assert "is gone" in verify(capsys)[1]


@pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite looks each conversation up by its row id")
def test_verify_does_not_compare_each_event_with_all_conversations():
    history("a")

    with CaptureQueriesContext(connection) as queries:
        verify_chains.verify_orphans()

    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {queries.captured_queries[-1]['sql']}")
        plan = " ".join(step for (step,) in cursor.fetchall())
    assert "Anti Join" in plan
    assert "SubPlan" not in plan


def test_verify_reads_by_pages(monkeypatch):
    monkeypatch.setattr("conversations.events.verify_chains.PAGE", 2)
    history(events=7)

    call_command("verify")


def test_verify_reads_the_audit_by_pages(monkeypatch):
    monkeypatch.setattr("conversations.access.audit.chain.PAGE", 2)
    fill(5)

    assert chain.verify() == ChainReport(5, ok=True)
    AuditEntry.objects.filter(seq__gte=4).delete()
    assert chain.verify().first_bad == "audit entry 4"


def test_verify_leaves_out_what_is_still_staged(capsys):
    history()
    Conversation.objects.update(key="staged:import:0", is_staged=True)

    code, printed = verify(capsys)

    assert code == 0
    assert printed.startswith("0 audit entries are intact\n0 events are intact\n")
    assert "have staged 1 conversation with 5 events." in printed
