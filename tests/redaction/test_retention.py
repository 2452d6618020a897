"""Retention rules: set, counted first, gone through daily beside live work; and holds, which beat them."""

import json
import threading
import time

import pytest
from django.db import connection

from conversations.access.audit import chain
from conversations.conversation.fork import fork
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.evidence import authority
from conversations.models import Agent, AuditEntry, Conversation, Event, LegalHold, Meta, Redaction, RetentionRule
from conversations.redaction import expiry, legal_holds, retention_job, retention_rules
from conversations.redaction import redact as redact_module
from conversations.redaction.redact import redact
from tests.events.test_log import message_event
from tests.redaction.test_redact import aged, everywhere, index, spoken
from tests.support.live import Server, until
from tests.support.redacted import stored_files
from tests.support.tiers import rounds
from tests.support.verified import verify_events

SECRET = "Hedgehog-4712"


@pytest.mark.django_db(transaction=True)
def test_only_an_admin_sets_and_removes_rules_and_each_is_audited(team):
    made = retention_rules.set_rule(team["admin"], days=30, kind="tool_step", reason="30 days")

    with pytest.raises(NotAllowed):
        retention_rules.set_rule(team["auditor"], days=30, reason="mine")
    with pytest.raises(Conflict, match="the same events"):
        retention_rules.set_rule(team["admin"], days=40, kind="tool_step", reason="40 days")
    for wrong in ({"days": 0}, {"days": 1, "reason": " "}, {"days": 1, "kind": "x" * 101}):
        with pytest.raises(Invalid):
            retention_rules.set_rule(team["admin"], **{"reason": "why", **wrong})
    retention_rules.remove_rule(team["admin"], made.pk)
    with pytest.raises(NotFound):
        retention_rules.remove_rule(team["admin"], made.pk)

    verbs = AuditEntry.objects.filter(outcome="done").order_by("seq").values_list("verb", flat=True)
    assert list(verbs) == ["set_retention", "remove_retention"]


@pytest.mark.django_db(transaction=True)
def test_a_round_does_what_the_dry_run_counted_and_notes_it_on_the_rule(team):
    for key in ("retain-a", "retain-b"):
        spoken(key, *(f"{SECRET} {n}" for n in range(3)))
        aged(key, 1, 2)
    legal_holds.place(team["admin"], "retain-b", "a lawsuit")
    rule = retention_rules.set_rule(team["admin"], days=30, kind="message", reason="30 days")

    counts, held = expiry.preview(retention_rules.selector(rule))
    done = retention_job.run_rule(rule)

    rule.refresh_from_db()
    assert (counts, held) == ({"message": 4}, 2)
    assert done == (rule.redacted, rule.held) == (2, 2)
    assert rule.ran_at
    assert {row.reason for row in Redaction.objects.all()} == {f"retention rule {rule.pk}: 30 days"}


@pytest.mark.django_db(transaction=True)
def test_a_removed_rule_stops_the_round_that_goes_by_it():
    spoken("retain-c", *(f"{SECRET} {n}" for n in range(3)))
    aged("retain-c", 1, 2)
    rule = retention_rules.set_rule(SYSTEM, days=30, reason="30 days")
    retention_rules.remove_rule(SYSTEM, rule.pk)

    assert retention_job.run_rule(rule) == (0, 0)
    assert Event.objects.filter(salt=None).count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_rule_that_was_stopped_halfway_has_not_run():
    spoken("retain-m", SECRET)
    aged("retain-m", 1)
    rule = retention_rules.set_rule(SYSTEM, days=30, reason="30 days")

    retention_job.run_rule(rule, goes_on=lambda: False)

    rule.refresh_from_db()
    assert rule.ran_at is None


@pytest.mark.django_db(transaction=True)
def test_a_rule_that_fails_keeps_no_other_from_its_round_and_is_tried_again_alone(monkeypatch):
    for key, kind in (("retain-k", "message"), ("retain-l", "tool_step")):
        spoken(key, SECRET)
        aged(key, 1)
        retention_rules.set_rule(SYSTEM, days=30, kind=kind, conversation=key, reason="30 days")
    broken, healthy = retention_rules.rules()
    job, matching = retention_job.RetentionJob(), expiry.matching

    def fails_for_one(rule):
        if rule.conversation == broken.conversation:
            raise ValueError("nobody thought of this")
        return matching(rule)

    with monkeypatch.context() as mistake:
        mistake.setattr(expiry, "matching", fails_for_one)
        job.start()
        job.wake()
        until(lambda: "nobody thought of this" in job.state, what="the failure to be reported")
        healthy.refresh_from_db()
        assert healthy.ran_at
        assert retention_job.last_run() == 0
    began = healthy.ran_at
    job.wake()
    until(lambda: job.state == "ok", what="the round to end")
    job.close()

    for rule in (broken, healthy):
        rule.refresh_from_db()
    assert broken.redacted == 1
    assert healthy.ran_at == began
    assert retention_job.last_run() > broken.ran_at


@pytest.mark.django_db(transaction=True)
def test_a_teams_rule_takes_its_conversations_after_a_handoff_too():
    for agent in ("Dialogue", "Coordinator"):
        Agent.objects.create(name=agent, team="Town Hall", served_until=0)
    spoken("retain-h", SECRET)
    aged("retain-h", 1)
    Conversation.objects.filter(key="retain-h").update(handler="Dialogue")
    rule = expiry.RetentionScope(older_than=time.time_ns() // 1000 - 30 * 86_400_000_000, team="Town Hall")
    assert expiry.preview(rule)[0]["message"] == 1

    handed = {"event": "conversation.handler", "id": "h1", "handler": "agent:Coordinator"}
    log.append([log.from_internal("retain-h", handed, SYSTEM)])

    assert Conversation.objects.get(key="retain-h").handler == "agent:Coordinator"
    assert expiry.preview(rule)[0]["message"] == 1


@pytest.mark.django_db(transaction=True)
def test_expiry_reads_bounded_pages(team, monkeypatch):
    monkeypatch.setattr(expiry, "READ", 10)
    monkeypatch.setattr(expiry, "PAGE", 4)
    for n in range(8):
        spoken(f"retain-d{n % 2}", *(f"{SECRET} {n}-{m}" for m in range(4)))
    aged("retain-d0", *range(1, 17))
    rule = expiry.RetentionScope(time.time_ns() // 1000 - 30 * retention_rules.DAY_US, ["message"])

    expired = expiry.expire(SYSTEM, rule, "30 days", lambda *_: None)

    assert expired == (16, 0)
    assert Event.objects.filter(salt=None).count() == 16
    assert max(len(json.loads(row.seqs)) for row in Redaction.objects.all()) <= 4
    assert verify_events().ok


@pytest.mark.django_db(transaction=True)
def test_a_round_that_was_noted_by_a_clock_that_was_ahead_is_due():
    spoken("retain-q", SECRET)
    aged("retain-q", 1)
    rule = retention_rules.set_rule(SYSTEM, days=30, reason="30 days")
    ahead = time.time_ns() // 1000 + 400 * retention_rules.DAY_US
    Meta.objects.create(name=retention_job.NAME, value=str(ahead))
    RetentionRule.objects.filter(pk=rule.pk).update(ran_at=ahead)
    job = retention_job.RetentionJob()

    job.start()
    job.wake()
    until(lambda: retention_job.last_run() < ahead, what="the round to end")
    job.close()

    assert erased("retain-q") == [1]


def erased(key):
    return list(Event.objects.filter(conversation__key=key, salt=None).order_by("seq").values_list("seq", flat=True))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("rows", [2, 3, 100])
def test_what_is_old_expires_behind_events_of_a_clock_that_was_ahead(monkeypatch, rows):
    monkeypatch.setattr(expiry, "READ", rows)
    for key, days in (("first", 100), ("ahead", -300), ("later", 90)):
        spoken(f"retain-{key}", *"abc")
        aged(f"retain-{key}", 1, 2, 3, days=days)
    rule = expiry.RetentionScope(time.time_ns() // 1000 - 30 * retention_rules.DAY_US)

    assert expiry.expire(SYSTEM, rule, "30 days", lambda *_: None) == (6, 0)

    assert [erased(f"retain-{key}") for key in ("first", "ahead", "later")] == [[1, 2, 3], [], [1, 2, 3]]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_narrow", [False, True], ids=["all", "of the fork"])
def test_the_age_of_copies_counts_from_when_the_fork_was_made(team, is_narrow):
    spoken("retain-p", *"abcd")
    aged("retain-p", 1, 2, 3, 4)
    made = fork(team["admin"], "retain-p", 3).conversation
    narrow = {"conversation": made} if is_narrow else {}
    rule = expiry.RetentionScope(time.time_ns() // 1000 - 30 * retention_rules.DAY_US, **narrow)

    expiry.expire(SYSTEM, rule, "30 days", lambda *_: None)
    assert [erased("retain-p"), erased(made)] == [[] if is_narrow else [1, 2, 3, 4], []]
    spoken(made, "young")
    aged(made, 4, days=31)  # `conversation.forked`
    expiry.expire(SYSTEM, rule, "30 days", lambda *_: None)

    assert erased(made) == [1, 2, 3, 4]
    assert verify_events().ok


@pytest.mark.django_db(transaction=True)
def test_a_conversation_that_is_removed_during_a_round_does_not_end_it(monkeypatch):
    for key in ("retain-r", "retain-s"):
        spoken(key, SECRET)
        aged(key, 1)
    rule = expiry.RetentionScope(time.time_ns() // 1000 - retention_rules.DAY_US)
    matching = expiry.matching

    def removed_after_the_read(rule):
        for page in matching(rule):
            Event.objects.filter(conversation__key="retain-r").delete()
            Conversation.objects.filter(key="retain-r").delete()
            yield page

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(expiry, "matching", removed_after_the_read)
        assert expiry.expire(SYSTEM, rule, "a day", lambda *_: None) == (1, 0)
        spoken("retain-r", SECRET)
        aged("retain-r", 1)
        assert expiry.preview(rule)[1] == 0

    assert erased("retain-s") == [1]


@pytest.mark.django_db(transaction=True)
def test_conversations_that_expire_do_not_come_to_the_top_of_the_list():
    spoken("retain-e", SECRET, "hello")
    spoken("retain-f", "hello")
    aged("retain-e", 1)

    expiry.expire(
        SYSTEM,
        expiry.RetentionScope(time.time_ns() // 1000 - retention_rules.DAY_US),
        "a day",
        lambda *_: None,
    )

    assert everywhere(SECRET) == []
    newest = Conversation.objects.newest_first().values_list("key", flat=True)
    assert list(newest) == ["retain-f", "retain-e"]


@pytest.mark.django_db(transaction=True)
def test_a_round_that_was_killed_before_rows_were_made_anew_leaves_no_word_in_captions(monkeypatch):
    spoken("retain-i", SECRET)
    index()
    aged("retain-i", 1)
    rule = expiry.RetentionScope(time.time_ns() // 1000 - 30 * retention_rules.DAY_US)
    with monkeypatch.context() as killed:
        killed.setattr(redact_module, "fold_rest", lambda: None)
        expiry.expire(SYSTEM, rule, "30 days", lambda *_: None)
    index()
    assert "conversations_conversation" in everywhere(SECRET)

    expiry.expire(SYSTEM, rule, "30 days", lambda *_: None)

    assert everywhere(SECRET) == []
    assert not Redaction.objects.filter(is_folded=False).exists()


@pytest.mark.slow
@pytest.mark.crash
def test_a_running_server_goes_by_the_rules_daily_beside_publishers(tmp_path):
    server = Server(tmp_path / "data", SWITCHBOARD_RETENTION_EVERY_S="0.2")
    token = server.token()
    texts = [f"{SECRET} {n}" for n in range(30)]
    old = f"spoken('retain-g', *{texts}); aged('retain-g', *range(1, 31))"  # before the server signs what there is
    server.command("shell", "--no-imports", "-c", f"from tests.redaction.test_redact import aged, spoken; {old}")
    server.start()
    message = {"type": "message", "conversation_id": "retain-g", "sender": "agent:A", "recipient": "agent:B"}
    made = server.request("POST", "/api/v1/retention-rules", b'{"days":30,"reason":"30 days"}', token)
    assert made[0] == 201
    assert server.request("GET", f"/api/v1/retention-rules/{made[1]['id']}/preview", token=token)[0] == 200

    def redacted():
        statuses.append(server.publish(token, "chat:retain-g", message | {"content": "live"}, f"l{len(statuses)}")[0])
        return not any(SECRET.encode() in text for text in stored_files(server.data_dir))

    statuses = []
    until(redacted, what="the words to be gone from every file")
    server.terminate()
    assert set(statuses) == {201}
    assert "events are intact" in server.command("verify")


def race(acts):
    """Do these at once, each in a thread; return what each answered or raised."""
    started, results = threading.Barrier(len(acts)), {}

    def run(name, act):
        started.wait()
        try:
            results[name] = act()
        except Conflict as error:
            results[name] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=item) for item in acts.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def raced(admin, rule, number):
    """Race a hold with a redaction and an expiry of one conversation, and check who won."""
    key = f"retain-race{number}"
    log.append([message_event(key, f"{SECRET} one"), message_event(key, f"{SECRET} two")])
    aged(key, 2)
    acts = {
        "hold": lambda: legal_holds.place(admin, key, "a lawsuit"),
        "redact": lambda: redact(admin, key, [1], "asked for"),
        "expire": lambda: expiry.expire(SYSTEM, rule._replace(conversation=key), "30 days", lambda *_: None),
    }
    names = sorted(acts, key=lambda name: (number * 7 + len(name) * number) % 11)

    results = race({name: acts[name] for name in names})

    held = LegalHold.objects.get(conversation__key=key)
    made = list(Redaction.objects.filter(conversation__key=key))
    assert all(row.at <= held.placed_at for row in made), "a hold was in force, and words went"
    gone = set(Event.objects.filter(conversation__key=key, salt=None).values_list("seq", flat=True))
    assert (1 in gone) == (not isinstance(results["redact"], Conflict))
    assert (2 in gone) == (results["expire"] == (1, 0))
    if gone != {1, 2}:
        with pytest.raises(Conflict, match="on legal hold"):
            redact(admin, key, [1, 2], "asked for")
    assert expiry.expire(SYSTEM, rule._replace(conversation=key), "again", lambda *_: None)[0] == 0
    return frozenset(gone)


def races(admin, count):
    rule = expiry.RetentionScope(time.time_ns() // 1000 - 30 * retention_rules.DAY_US, ["message"])
    outcomes = [raced(admin, rule, number) for number in range(count)]
    assert verify_events().ok
    assert chain.verify().ok
    return outcomes


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_hold_beats_redaction_and_expiry_in_races(team):
    races(team["admin"], rounds(10, 40))


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.django_db(transaction=True)
def test_a_hold_beats_redaction_and_expiry_in_a_thousand_races(team):
    outcomes = races(team["admin"], 1000)

    assert len(set(outcomes)) > 1, "the hold always came first or last: nothing was raced"


@pytest.mark.django_db(transaction=True)
def test_a_hold_that_was_changed_or_removed_beside_the_audit_log_is_named_by_verify():
    spoken("retain-j", SECRET)
    first = legal_holds.place(SYSTEM, "retain-j", "a lawsuit")
    second = legal_holds.place(SYSTEM, "*", "SEC 17a-4", is_regulated=True)
    legal_holds.release(SYSTEM, first.pk, "it is over")
    assert authority.first_fault() == ""
    rows = LegalHold.objects.filter(pk=second.pk)

    rows.update(released_at=1)
    assert authority.first_fault() == f"legal hold {second.pk} is released; the audit log differs"
    rows.update(released_at=None, is_regulated=False)
    assert authority.first_fault() == f"legal hold {second.pk} differs from the audit log"
    rows.delete()
    assert authority.first_fault() == f"legal hold {second.pk} is missing, although holds are never removed"


@pytest.mark.django_db(transaction=True)
def test_a_regulated_conversation_refuses_redaction_and_expiry_for_good(team):
    spoken("retain-h", SECRET)
    aged("retain-h", 1)
    hold = legal_holds.place(team["admin"], "retain-h", "SEC 17a-4", is_regulated=True)
    rule = retention_rules.set_rule(team["admin"], days=30, reason="30 days")

    with pytest.raises(Conflict, match="class regulated"):
        redact(team["admin"], "retain-h", [1], "asked for")
    with pytest.raises(Conflict, match="can never be released"):
        legal_holds.release(team["admin"], hold.pk, "please")
    assert retention_job.run_rule(rule) == (0, 1)

    assert Event.objects.get(conversation__key="retain-h", seq=1).salt is not None
    assert RetentionRule.objects.get().held == 1
