"""What became of a message, told from rows and events alone: every state, on the page and while it changes."""

import re

import pytest

from conversations.conversation import control, delivery_status, post_message
from conversations.conversation import fork as forks
from conversations.conversation.delivery_status import DeliveryStatus
from conversations.core import principals
from conversations.events import log
from conversations.models import Agent, Conversation, Event, Post
from conversations.runs import claims, stop_and_rerun
from tests.support import held_run, teamwork
from tests.support.cast import client_of
from tests.support.unchecked import unchecked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]


def status_of(seq: int, key: str = "flood") -> DeliveryStatus:
    return delivery_status.statuses_for(Conversation.objects.get(key=key), [seq])[seq]


def shown(seq: int, key: str = "flood") -> tuple[str, str, str]:
    status = status_of(seq, key)
    return status.state, f"{status.words} {status.agent} {status.verb}".strip(), str(status.detail)


def grow_old(seconds: float = 60) -> None:
    for event in Event.objects.all():
        Event.objects.filter(pk=event.pk).update(at=event.at - int(seconds * 1e6))


def say_to(by, recipient: str, client_id: str = "x") -> int:
    return post_message.post(by, "flood", recipient=recipient, content="hello", client_id=client_id).seq


def from_outside(payload) -> int:
    return log.append([unchecked("flood", payload, principals.token_principal("robot"))])[0].seq


# the states, in the order in which they come


def test_it_waits_for_its_agent_then_is_picked_up_then_answered(otto):
    seq = teamwork.say(otto)
    assert shown(seq) == ("waits", "Stored, waiting for Dialogue", "")

    claim = teamwork.claim()
    assert shown(seq) == ("picked", "Picked up by Dialogue", "")

    held_run.finish(claim, {"event": "run.done"}, {"event": "output", "text": "It is filed.", "turn": 1, "final": True})
    answer = Event.objects.get(kind="output").seq
    assert (*shown(seq), status_of(seq).link) == ("answered", "Answered by Dialogue", "", answer)
    assert status_of(seq).is_settled


def test_a_run_that_waits_for_a_decision_has_picked_it_up(otto):
    approval = teamwork.ask(otto)
    seq = Event.objects.get(kind="message").seq

    assert shown(seq) == ("picked", "Picked up by Dialogue", "waiting for approval")

    assert status_of(seq).step == 3
    assert approval.status == "pending"


def test_a_run_that_waits_for_a_server_says_so(otto):
    seq = teamwork.say(otto)
    claims.suspend(teamwork.claim(), "server", about={"server": "files", "detail": "refused"}, **teamwork.SEALED)

    assert shown(seq) == ("picked", "Picked up by Dialogue", "waiting for a server")


@pytest.mark.parametrize(
    ("end", "words", "why"),
    [
        ({"event": "run.failed", "reason": "error", "error": "no"}, "Dialogue failed", ""),
        ({"event": "run.failed", "reason": "max_turns"}, "Dialogue failed", "max_turns"),
        ({"event": "run.cancelled", "reason": "by user:ada"}, "Dialogue was stopped", "by user:ada"),
        ({"event": "run.incompatible", "reason": "the tool is gone"}, "Dialogue could not resume", "the tool is gone"),
    ],
)
def test_a_bad_end_is_told_with_its_reason_and_can_be_run_again(otto, end, words, why):
    seq = teamwork.say(otto)
    claim = teamwork.claim()
    held_run.finish(claim, end)

    assert shown(seq) == ("failed", words, why)
    assert status_of(seq).again == claim.run
    stop_and_rerun.run_again(otto, claim.run)
    assert status_of(seq).state == "waits"


def test_a_run_without_words_says_so_and_leads_to_its_end(otto):
    seq = teamwork.say(otto)
    held_run.finish(teamwork.claim(), {"event": "run.done"})

    status = status_of(seq)

    assert (status.words, status.link) == ("Finished without a reply by", Event.objects.get(kind="run.done").seq)


# never started


def test_what_nobody_begins_with_is_never_started_with_its_age_and_why(otto):
    seq = teamwork.say(otto)
    assert status_of(seq).again_s <= 10.2
    grow_old()

    assert shown(seq) == ("late", "Not picked up by Dialogue", "no worker has started it")
    since = status_of(seq).since
    assert since is not None
    assert since.timestamp() == pytest.approx(Event.objects.get(seq=seq).at / 1e6)


def _no_worker(otto, ada) -> None:
    Agent.objects.update(served_until=0)


def _paused(otto, ada) -> None:
    control.pause(ada, "flood")


def _held(otto, ada) -> None:
    control.take_over(ada, "flood")


@pytest.mark.parametrize(
    ("hinder", "why"),
    [
        (_no_worker, "Dialogue is not available"),
        (_paused, "this conversation is paused"),
        (_held, "ada took over this conversation"),
    ],
)
def test_why_it_is_not_begun_is_said_at_once_and_still_when_it_is_late(team, otto, hinder, why):
    teamwork.say(otto)
    hinder(otto, team["admin"])
    seq = Event.objects.filter(kind="message", principal="user:otto").latest("seq").seq

    assert shown(seq) == ("waits", "Stored, waiting for Dialogue", why)
    grow_old()
    assert shown(seq) == ("late", "Not picked up by Dialogue", why)


def test_what_only_has_to_wait_for_its_turn_is_told_its_age_without_alarm(otto):
    teamwork.say(otto)
    teamwork.claim()
    seq = teamwork.say(otto, client_id="2")
    grow_old()

    assert shown(seq) == ("waits", "Stored, waiting for Dialogue", "Dialogue is answering an earlier message")
    assert status_of(seq).since is not None


# the bus, and agents of other processes


def test_without_a_bus_what_nobody_here_answers_is_stored(otto):
    teamwork.say(otto)
    seq = say_to(otto, "agent:Foreign")

    assert shown(seq) == ("stored", "Stored", "")
    assert status_of(seq).again_s == 0


def test_words_changed_in_a_fork_are_stored_and_wait_for_no_bus(otto):
    seq = teamwork.say(otto)
    fork = forks.fork(otto, "flood", seq, words="Other words", run=False)

    assert shown(seq + 1, fork.conversation) == ("stored", "Stored", "")
    assert status_of(seq + 1, fork.conversation).again_s == 0


def test_a_relayed_message_is_on_the_bus_once_all_its_posts_are(otto, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"redis_url": "redis://127.0.0.1:1"})
    from conversations.transport import relay_start

    relay_start.ensure_start()
    teamwork.say(otto)
    seq = say_to(otto, "agent:Foreign")
    posts = Post.objects.filter(event_seq=seq)
    assert posts.count() == 2
    assert shown(seq) == ("stored", "Stored", "waiting for the bus")
    assert status_of(seq).again_s == 2

    for first, then in (("chat:Foreign", "chat:flood"), ("chat:flood", "chat:Foreign")):
        posts.filter(topic=first).update(sent_at=1)
        posts.filter(topic=then).update(sent_at=None)
        assert status_of(seq).state == "stored", first
    posts.update(sent_at=1)

    assert shown(seq) == ("bus", "On the bus", "")
    queued = Event.objects.filter(kind="message").earliest("seq").seq
    Post.objects.update(sent_at=1)
    assert shown(queued) == ("waits", "On the bus, waiting for Dialogue", "")


def test_a_foreign_agents_first_event_picks_it_up_and_its_first_words_answer_it(otto):
    teamwork.say(otto)
    seq = say_to(otto, "agent:Foreign")
    from_outside({"event": "tool_step", "name": "look", "agent": "Other"})
    assert status_of(seq).state == "stored"

    picked = from_outside({"event": "tool_step", "name": "look", "agent": "Foreign"})
    assert (*shown(seq), status_of(seq).link) == ("picked", "Picked up by Foreign", "", picked)

    answer = from_outside({"type": "message", "sender": "agent:Foreign", "recipient": "user:otto", "content": "Yes"})
    assert (*shown(seq), status_of(seq).link) == ("answered", "Answered by Foreign", "", answer)


def test_what_is_streamed_without_a_name_is_probably_of_the_lone_agent(otto):
    """As magent2's workers stream."""
    seq = say_to(otto, "agent:Foreign")

    picked = from_outside({"event": "tool_step", "name": "look"})
    assert (*shown(seq), status_of(seq).link) == ("picked", "Probably picked up by Foreign", "", picked)
    answer = from_outside({"event": "output", "text": "Yes"})
    assert (*shown(seq), status_of(seq).link) == ("answered", "Probably answered by Foreign", "", answer)

    from_outside({"type": "message", "sender": "agent:Other", "recipient": "chat:flood", "content": "I am here"})
    assert status_of(seq).state == "stored"


def test_only_what_people_sent_has_a_delivery(otto):
    teamwork.say(otto)
    claimed = from_outside({"type": "message", "sender": "user:otto", "recipient": "agent:Dialogue", "content": "x"})

    assert delivery_status.statuses_for(Conversation.objects.get(key="flood"), [claimed, 1, 99]) == {}


def test_what_a_fork_copied_was_sent_elsewhere_until_it_is_answered_there(otto):
    seq = teamwork.say(otto)
    held_run.finish(teamwork.claim(), {"event": "run.done"})

    copied, answered = (forks.fork(otto, "flood", seq, run=run).conversation for run in (False, True))

    assert delivery_status.statuses_for(Conversation.objects.get(key=copied), [seq]) == {}
    assert status_of(seq, answered).state == "waits"


# on the page


def test_the_page_draws_it_and_the_bar_tells_it_anew(otto):
    seq = teamwork.say(otto)
    page = client_of(otto)
    before = page.get("/conversations/flood/").content.decode()
    assert re.search(rf'id="e{seq}".*?data-of="{seq}" data-state="waits"', before, re.S)

    run = teamwork.claim()
    held_run.finish(run, {"event": "run.failed", "reason": "<b>hop</b>"})
    now = page.get(f"/conversations/flood/standing/?of={seq}&of=1&of=x&of=999").content.decode()

    assert now.count("data-of=") == 1
    assert f'data-of="{seq}" data-state="failed"' in now
    assert f'form="again" name="run" value="{run.run}"' in now
    assert "<b>hop" not in now
    drawn = page.get("/conversations/flood/entries/").json()["html"]
    assert f'data-of="{seq}" data-state="failed"' in drawn


def test_a_page_of_many_messages_costs_as_many_queries_as_a_page_of_one(otto, django_assert_max_num_queries):
    for n in range(20):
        teamwork.say(otto, client_id=str(n + 1))
    conversation = Conversation.objects.get(key="flood")
    seqs = list(Event.objects.filter(kind="message").order_by("seq").values_list("seq", flat=True))

    with django_assert_max_num_queries(6):
        assert len(delivery_status.statuses_for(conversation, seqs)) == 20
