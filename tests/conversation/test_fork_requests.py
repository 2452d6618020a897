"""Forks as requests: which run they start, asked for twice, refused, cut off half-way (§3.4, 5)."""

import pytest

from conversations.access import permissions
from conversations.conversation import fork as forks
from conversations.core import principals
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.events import log
from conversations.models import Agent, AuditEntry, Conversation, Event, Post, Run
from tests.conversation.test_forks import everything
from tests.support.cast import STRANGER, audit_summary, last_entry
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db


@pytest.fixture
def hello(otto):
    """A conversation in which a person spoke and an agent of ours answered."""
    Agent.objects.create(team="t", name="Clerk", is_entry=True)
    body = {"type": "message", "sender": "user:otto", "recipient": "agent:Clerk", "content": "Refund Ada.", "id": "m1"}
    log.append([unchecked("hello", body, principals.user_principal("otto"))])
    answer = {"type": "message", "sender": "agent:Clerk", "recipient": "user:otto", "content": "Done.", "id": "m2"}
    log.append([unchecked("hello", answer, principals.run_principal("Clerk"))])
    return Conversation.objects.get(key="hello")


def test_a_run_is_queued_only_when_asked_for(otto, hello):
    runs = Run.objects.count()
    forks.fork(otto, "hello", 2)
    assert Run.objects.count() == runs

    made = forks.fork(otto, "hello", 1, words="Refund Bo.", run=True)

    run = Run.objects.get(id=made.run)
    assert (run.agent, run.status, run.input_seq, run.conversation.key) == ("Clerk", "queued", 2, made.conversation)
    assert run.conversation.handler == "agent:Clerk"
    topics = Post.objects.filter(conversation__key=made.conversation).values_list("topic", flat=True)
    assert set(topics) == {"chat:Clerk", f"chat:{made.conversation}"}


def test_a_run_goes_on_from_what_was_said_and_by_whom_one_names(otto, hello):
    Agent.objects.create(team="t", name="Other", is_entry=True)

    made = forks.fork(otto, "hello", 2, run=True, agent="Other")

    assert (Run.objects.get(id=made.run).agent, Run.objects.get(id=made.run).input_seq) == ("Other", 1)


@pytest.mark.parametrize("words", [None, "Refund Bo."])
def test_a_run_is_of_whom_handled_it_at_the_event_not_of_whom_it_was_handed_to_later(otto, hello, words):
    Agent.objects.create(team="t", name="Billing", is_entry=True)
    named = {"event": "conversation.handler", "handler": "agent:Clerk"}
    again = {"type": "message", "sender": "user:otto", "recipient": "chat:hello", "content": "And Ida?", "id": "m3"}
    log.append([unchecked("hello", named, principals.run_principal("Clerk"))])
    (stored, *_) = log.append([unchecked("hello", again, principals.user_principal("otto"))])
    log.append([unchecked("hello", named | {"handler": "agent:Billing"}, principals.run_principal("Clerk"))])

    then = forks.fork(otto, "hello", stored.seq, words=words, run=True)
    now = forks.fork(otto, "hello", Conversation.objects.get(key="hello").head_seq, run=True)

    for made, agent in ((then, "Clerk"), (now, "Billing")):
        assert Run.objects.get(id=made.run).agent == agent
        assert Conversation.objects.get(key=made.conversation).handler == f"agent:{agent}"


def test_a_run_is_run_again_from_where_it_began(otto, hello):
    old = Run.objects.get(conversation=hello)
    payload = {"event": "run.started", "run_id": old.id, "agent": "Clerk", "attempt": 1, "worker": "w"}
    log.append([unchecked("hello", payload, principals.run_principal("Clerk"))])

    made = forks.rerun(otto, old.id)

    new = Run.objects.get(id=made.run)
    assert (new.input_seq, new.agent) == (old.input_seq, old.agent)
    assert Conversation.objects.get(key=made.conversation).copied_seq == 3
    assert Run.objects.get(id=old.id).status == "running"


def test_the_same_client_id_again_is_the_same_fork(otto, hello):
    first = forks.fork(otto, "hello", 1, words="Refund Bo.", run=True, client_id="once")
    again = forks.fork(otto, "hello", 1, words="Refund Bo.", run=True, client_id="once")

    assert again == first
    assert Conversation.objects.count() == 2


def test_who_asks_while_the_same_fork_is_made_is_answered_with_it(otto, hello, monkeypatch):
    find_fork, looks = forks._existing_fork, []
    first = forks.fork(otto, "hello", 1, client_id="once")
    monkeypatch.setattr(
        forks, "_existing_fork", lambda key: find_fork(key) if looks else looks.append(key)
    )  # not there at first

    assert forks.fork(otto, "hello", 1, client_id="once") == first
    assert Conversation.objects.count() == 2


def test_who_copies_while_the_same_fork_is_made_is_answered_with_it(otto, hello, monkeypatch):
    quicker = []

    def meanwhile(_):
        monkeypatch.setattr(forks, "failpoint", lambda _: None)
        quicker.append(forks.fork(otto, "hello", 1, client_id="once"))

    monkeypatch.setattr(forks, "failpoint", meanwhile)

    assert [forks.fork(otto, "hello", 1, client_id="once")] == quicker
    assert Conversation.objects.count() == 2


@pytest.mark.parametrize(
    ("at", "more", "field"),
    [
        (0, {}, "at"),
        (99, {}, "at"),
        (1, {"words": " "}, "words"),
        (1, {"words": "x" * 100_001}, "words"),
        (2, {"words": "x"}, "words"),
        (1, {"run": True, "agent": "Nobody"}, "agent"),
        (1, {"reason": "x" * 2001}, "reason"),
    ],
)
def test_what_cannot_be_forked_so_is_refused_and_leaves_nothing(otto, at, more, field):
    body = {"type": "message", "sender": "Rosa", "recipient": "agent:Gone", "content": "Hi"}
    log.append([unchecked("c", body, principals.token_principal("robot")), unchecked("c", {"what": "else"})])

    with pytest.raises(Invalid) as wrong:
        forks.fork(otto, "c", at, **more)

    assert wrong.value.field == field
    assert Conversation.objects.count() == 1


def test_who_may_not_is_refused_before_anything_is_copied_and_that_is_recorded(team, hello, monkeypatch):
    monkeypatch.setattr(forks, "failpoint", lambda _: pytest.fail("it was copied"))
    for who in (team["viewer"], team["approver"], team[""], STRANGER):
        with pytest.raises(NotAllowed):
            forks.fork(who, "hello", 1)
        assert audit_summary(last_entry()) == (
            str(permissions.principal_of(who)),
            "fork",
            "conversation:hello",
            "refused",
        )
    with pytest.raises(NotFound):
        forks.fork(team["operator"], "nowhere", 1)
    assert Conversation.objects.count() == 1


def test_what_fails_half_way_leaves_nothing_and_shows_nothing(otto, monkeypatch):
    parent = everything()
    seen = []

    def fail(*_):
        seen.append((Conversation.objects.visible().count(), Conversation.objects.count()))
        raise RuntimeError

    monkeypatch.setattr(forks, "failpoint", fail)
    with pytest.raises(RuntimeError):
        forks.fork(otto, "parent", parent.head_seq)

    assert seen == [(1, 2)]
    assert Conversation.objects.count() == 1
    assert Event.objects.count() == parent.head_seq
    assert not AuditEntry.objects.filter(verb="fork").exists()


def test_a_fork_that_was_cut_off_is_removed_at_the_next_start(otto, monkeypatch):
    parent = everything()
    copied = log.ForkCopy(log.StagedBatch(), "half", parent, upto=parent.head_seq)
    copied.take()
    Conversation.objects.filter(is_staged=True).update(last_at=1)  # it stood still for long

    log.discard_staged()

    assert Event.objects.count() == parent.head_seq
    with pytest.raises(Conflict), log.write_transaction():
        copied.publish()
    assert not Conversation.objects.visible().filter(key="half").exists()


def test_a_fork_that_is_removed_while_it_is_copied_leaves_no_event(otto):
    parent = everything()
    copied = log.ForkCopy(log.StagedBatch(), "half", parent, upto=parent.head_seq)
    Conversation.objects.filter(is_staged=True).update(last_at=1)
    log.discard_staged()

    with pytest.raises(Conflict, match="cleaned up as abandoned"):
        copied.take()
    assert Event.objects.count() == parent.head_seq
