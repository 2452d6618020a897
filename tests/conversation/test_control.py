"""Steering a conversation: each verb works, is refused to strangers, tells who lost a race, is an event and audited."""

import json
import threading
from datetime import datetime

import pytest
from django.db import connection

from conversations.access.accounts import tokens as token_actions
from conversations.conversation import control, post_message
from conversations.core import principals
from conversations.core.errors import Invalid, NotAllowed, NotFound, TooLate
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Agent, Conversation, Event, Participant, Post, Run, Token
from conversations.runs import claims
from tests.events.test_projections import rows
from tests.support import held_run, teamwork
from tests.support.cast import audit_summary, last_entry
from tests.support.claiming import served_agents
from tests.support.unchecked import unchecked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]

# verb: what has to be so before, the event, and what is so after (state, held)
VERBS = {
    "pause": ([], "conversation.paused", ("paused", False)),
    "resume": (["pause"], "conversation.resumed", ("open", False)),
    "take_over": ([], "conversation.taken_over", ("open", True)),
    "hand_back": (["take_over"], "conversation.handed_back", ("open", False)),
    "stop": ([], "run.cancelled", ("open", False)),
    "abort": ([], "run.cancelled", ("open", False)),
}


def perform(by, *verbs, key="flood", reason="because"):
    for verb in verbs:
        control.perform(by, verb, key, reason)


def events(kind, key="flood"):
    rows_of_kind = Event.objects.filter(conversation__key=key, kind=kind).order_by("seq")
    return [(event.principal, json.loads(event.body)) for event in rows_of_kind]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_changes_the_state_tells_an_event_and_is_audited(otto, verb):
    before, kind, after = VERBS[verb]
    teamwork.say(otto)
    perform(otto, *before)

    row = control.perform(otto, verb, "flood", "the water is off")

    assert (row.state, row.owner == "user:otto") == after
    principal, body = events(kind)[-1]
    assert (principal, body["by"], body["reason"]) == ("user:otto", "user:otto", "the water is off")
    assert audit_summary(last_entry()) == ("user:otto", verb, "conversation:flood", "done")
    assert last_entry().reason == "the water is off"


@pytest.mark.parametrize("verb", VERBS)
def test_who_comes_second_learns_who_was_first_and_when(people, otto, verb):
    before, kind, _ = VERBS[verb]
    teamwork.say(otto)
    if verb in ("stop", "abort"):
        teamwork.claim()
        kind = "run.stopping"
    perform(otto, *before, verb)
    at = Event.objects.get(kind=kind).at

    with pytest.raises(
        TooLate, match=r"user:otto (paused it|resumed it|took over|handed back|stopped it) at [\d-]{10} [\d:]{8} UTC"
    ) as late:
        control.perform(people["admin"], verb, "flood", "me too")

    error = late.value.as_dict()
    assert (error["by"], error["did"]) == ("user:otto", kind.rpartition(".")[2])
    assert datetime.fromisoformat(error["at"]).timestamp() == pytest.approx(at / 1e6)
    assert audit_summary(last_entry()) == ("user:ada", verb, "conversation:flood", "refused")


@pytest.mark.parametrize("verb", ["stop", "abort"])
def test_where_nothing_runs_nobody_is_named_who_stopped_an_earlier_run(people, otto, verb):
    teamwork.say(otto)
    claim = teamwork.claim()
    perform(otto, verb)
    held_run.finish(claim, {"event": "run.cancelled", "reason": "by user:otto"})

    with pytest.raises(TooLate) as late:
        control.perform(people["admin"], verb, "flood")

    assert (late.value.message, late.value.first["by"]) == (control.NOTHING["nothing_to_stop"], "")


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_on_a_conversation_that_is_not_there_is_said(otto, verb):
    with pytest.raises(NotFound):
        control.perform(otto, verb, "nowhere")

    assert not Conversation.objects.exists()


def test_a_reason_has_bounds_and_an_action_a_name(otto):
    teamwork.say(otto)

    with pytest.raises(Invalid) as long:
        control.pause(otto, "flood", "x" * 2001)
    with pytest.raises(Invalid) as odd:
        control.perform(otto, "explode", "flood")

    assert (long.value.field, odd.value.field) == ("reason", "action")


def test_a_conversation_that_somebody_holds_is_handed_back_by_another_with_a_reason(people, otto):
    teamwork.say(otto)
    perform(otto, "take_over")

    for reason in ("", " \n"):
        with pytest.raises(Invalid, match="user:otto took over"):
            control.hand_back(people["admin"], "flood", reason)
    control.hand_back(people["admin"], "flood", "he has gone home")

    assert events("conversation.handed_back")[-1][1]["owner"] == "user:otto"


def test_what_the_owner_says_to_the_conversation_asks_no_agent(people, otto):
    teamwork.say(otto)
    perform(otto, "stop", "take_over")

    for by, to in ((otto, "chat:flood"), (people["admin"], "chat:flood"), (otto, "agent:Dialogue")):
        post_message.post(by, "flood", recipient=to, content="hi", client_id=f"{by}{to}")

    assert Run.objects.filter(status="queued").count() == 2


def test_a_token_may_pause_but_takes_nothing_over(people):
    teamwork.say(people["operator"])
    token_actions.make_token(people["admin"], "robot", "operator")
    robot = Token.objects.get(name="robot")

    paused = control.pause(robot, "flood")
    with pytest.raises(NotAllowed, match="only a person"):
        control.take_over(robot, "flood")
    control.resume(robot, "flood")
    control.stop(robot, "flood")

    assert (paused.state, Conversation.objects.get().state) == ("paused", "open")
    assert events("conversation.paused") == [("system", events("conversation.paused")[0][1])]
    assert events("conversation.paused")[0][1]["by"] == "token:robot"
    assert audit_summary(last_entry())[0] == "token:robot"
    assert Run.objects.get().status == "cancelled"


@pytest.mark.parametrize("kind", ["conversation.paused", "conversation.taken_over"])
@pytest.mark.parametrize(
    "principal", [principals.token_principal("robot"), principals.import_principal("file")], ids=str
)
def test_a_claim_from_outside_steers_nothing(otto, kind, principal):
    teamwork.say(otto)

    log.append([log.from_internal("flood", {"event": kind, "by": "user:otto"}, principal)])

    assert not Conversation.objects.get().is_held
    assert len(claims.claim("host:1", served_agents("Town Hall", "Dialogue"), at_most=1)) == 1


def test_rebuild_keeps_who_holds_it_and_why(otto):
    teamwork.say(otto)
    perform(otto, "pause", "take_over")
    before = rows()

    list(rebuild())

    assert rows() == before
    row = Conversation.objects.get()
    kinds = [Event.objects.get(seq=seq).kind for seq in (row.paused_seq, row.owned_seq)]
    assert kinds == ["conversation.paused", "conversation.taken_over"]


def test_agents_of_other_processes_are_told_on_their_control_topic(otto):
    Agent.objects.filter(name="Triage").delete()
    teamwork.say(otto)
    for sender in ("agent:Triage", "agent:Dialogue", "Rosa"):
        body = {"event": "message", "sender": sender, "recipient": "agent:Away", "content": "hi"}
        log.append([log.from_internal("flood", body, principals.token_principal("robot"))])

    perform(otto, "take_over", reason="I know her")

    posts = list(Post.objects.filter(topic__startswith="control:").order_by("topic").values_list("topic", flat=True))
    assert posts == ["control:Away", "control:Triage"]
    principal, body = events("control")[0]
    assert (principal, body["sender"], body["recipient"], body["content"]) == (
        *("user:otto", "user:otto"), *("agent:Away", "take_over")
    )  # fmt: skip
    assert body["metadata"] == {"by": "user:otto", "reason": "I know her"}


def test_agents_inside_a_tool_or_known_by_an_import_alone_are_not_told(otto):
    """Nobody reads their control topics; an agent that was spoken to since may."""
    teamwork.say(otto)
    claimed = teamwork.claim()
    inside = {"agent": "Weather", "parent_call": "call-1"}
    step = {"event": "tool_step", "name": "look_up", "tool_call": "call-2", "tool_call_id": "c", "status": "start"}
    output = {"event": "output", "text": "Rain.", "turn": 2}
    log.append([claimed.event({**inside, **output}), claimed.event({**inside, **step, "args_raw": "{}"})])
    imported = {"type": "message", "sender": "agent:Old", "recipient": "agent:Older", "content": "hi"}
    log.append([unchecked("flood", imported, principals.import_principal("file"))])
    assert {"agent:Weather", "agent:Old", "agent:Older"} < set(Participant.objects.values_list("name", flat=True))

    perform(otto, "pause")
    assert not Post.objects.filter(topic__startswith="control:").exists()
    assert "control" not in list(Event.objects.values_list("kind", flat=True))

    hello = {"type": "message", "sender": "agent:Robot", "recipient": "agent:Older", "content": "hello"}
    log.append([unchecked("flood", hello, principals.token_principal("robot"))])
    before = list(Participant.objects.order_by("name").values())
    list(rebuild())
    assert list(Participant.objects.order_by("name").values()) == before
    perform(otto, "resume")
    topics = Post.objects.filter(topic__startswith="control:").order_by("topic").values_list("topic", flat=True)
    assert list(topics) == ["control:Older", "control:Robot"]


def test_several_at_once_each_have_their_own_outcome(otto):
    for key in ("a", "b"):
        teamwork.say(otto, key)
    perform(otto, "pause", key="b")

    outcomes = control.perform_on_each(otto, "pause", ["a", "b", "nowhere", "a"], "storm")

    results = [(outcome.conversation, outcome.error.code if outcome.error else "") for outcome in outcomes]
    assert results == [("a", ""), ("b", "paused"), ("nowhere", "not_found")]
    assert Conversation.objects.get(key="a").state == "paused"
    for keys, action, field in (([], "pause", "conversations"), (["a"], "no", "action")):
        with pytest.raises(Invalid) as wrong:
            control.perform_on_each(otto, action, keys)
        assert wrong.value.field == field


@pytest.mark.django_db(transaction=True)
def test_of_people_who_take_over_at_once_one_holds_it_and_the_others_learn_who(people, otto):
    teamwork.say(otto)
    outcomes: list[str] = []
    start = threading.Barrier(4)

    def take(name):
        try:
            start.wait(60)
            control.take_over(principals.user_principal(name), "flood")
            outcomes.append("mine")
        except TooLate as late:
            outcomes.append(late.first["by"])
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=(name,)) for name in ("otto", "ada", "otto", "ada")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    owner = Conversation.objects.get().owner
    assert sorted(outcomes) == sorted(["mine", *[owner] * 3])
    assert len(events("conversation.taken_over")) == 1
