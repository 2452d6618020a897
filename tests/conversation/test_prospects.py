"""What becomes of words is said before they are sent, and happens then; speaking as another by the API and the form."""

import json

import pytest
from django.urls import reverse

from conversations.access.accounts.edit_grants import give_grant
from conversations.conversation import control, delivery_preview, post_message
from conversations.core.errors import Invalid
from conversations.core.principals import SYSTEM
from conversations.models import Agent, Conversation, Event, Run
from conversations.runs import claims, stop_and_rerun
from tests.support import held_run, teamwork
from tests.support.cast import client_of, person
from tests.support.claiming import served_agents
from tests.support.visits import words

pytestmark = pytest.mark.django_db


@pytest.fixture
def otto(team):
    """An operator who may speak as anybody, in a conversation that Dialogue handles and has answered."""
    teamwork.team()
    give_grant(SYSTEM, "otto", "speak_as", "*")
    teamwork.say(team["operator"], "c")
    claimed = teamwork.claim("c")
    held_run.finish(claimed, {"event": "run.done"})
    return team["operator"]


def prospect(sender="user:otto", to="chat:c", by="user:otto", when="after_run"):
    return delivery_preview.preview_delivery(
        Conversation.objects.get(key="c"), by=by, sender=sender, recipient=to, when=when
    )


def say(otto, sender="", to="chat:c", client_id="x"):
    return post_message.post(
        otto, "c", sender=sender, recipient=to, content="Hello", client_id=client_id, reason="because"
    )


def test_nothing_stands_in_the_way_of_an_answer(otto):
    assert prospect() == prospect(to="agent:Dialogue") == prospect("system") == ("", False, "")


@pytest.mark.parametrize(
    ("sender", "to", "expected"),
    [
        ("agent:Dialogue", "agent:Dialogue", "Dialogue does not answer its own messages"),
        ("user:otto", "agent:Triage", "Triage takes only handoffs from other agents"),
        ("user:otto", "agent:Elsewhere", "Elsewhere does not run here"),
        ("agent:Triage", "chat:c", "Pick a recipient to get an answer"),
    ],
)
def test_that_nobody_is_asked_is_said_and_so(otto, sender, to, expected):
    preview = prospect(sender, to)
    say(otto, sender, to)

    assert expected in preview.words
    assert preview.waits
    assert not Run.objects.filter(status="queued").exists()


def test_a_conversation_without_a_handler_says_so(otto):
    Conversation.objects.update(handler="")
    assert "No agent will reply" in prospect().words
    Conversation.objects.update(handler="agent:Elsewhere")
    assert "Elsewhere handles this conversation but does not run here" in prospect().words


def test_a_pause_and_a_holder_are_named_with_what_ends_the_wait(otto, team):
    control.pause(otto, "c")
    assert prospect().words == (
        "Your message will wait: the conversation is paused. Dialogue answers once the conversation is resumed."
    )

    control.take_over(team["admin"], "c")
    why = "ada took over and the conversation is paused"
    then = "Dialogue answers once the conversation is handed back and resumed"
    assert prospect().words == f"Your message will wait: {why}. {then}."

    say(otto)
    assert Run.objects.get(status="queued").agent == "Dialogue"
    assert claims.claim("w", served_agents("Town Hall", "Dialogue"), at_most=9) == []


def test_who_holds_it_answers_here_and_may_still_ask_an_agent(otto):
    control.take_over(otto, "c")

    assert "so no agent will reply" in prospect().words
    assert "you took over. Dialogue answers once the conversation is handed back" in prospect(to="agent:Dialogue").words
    assert "user" not in prospect(by="user:ada").words

    say(otto)
    assert not Run.objects.filter(status="queued").exists()


def test_a_question_and_work_that_come_first_are_named(otto):
    approval = teamwork.ask(otto, "c", client_id="2")
    assert "Dialogue is waiting for an approval" in prospect().words

    stop_and_rerun.cancel_run(SYSTEM, approval.run)
    say(otto)
    assert "another message comes first" in prospect().words
    teamwork.claim("c")
    assert "Dialogue is working. Then Dialogue answers" in prospect().words


def test_that_no_worker_is_there_is_said(otto):
    Agent.objects.update(served_until=1)

    assert "Dialogue is not available now" in prospect().words


def test_the_page_tells_it_from_the_start_and_anew_for_each_choice(otto):
    control.pause(otto, "c")
    browser = client_of(otto)

    page = words(browser.get("/conversations/c/"))
    assert "Your message will wait: the conversation is paused." in page

    address = reverse("conversation-prospect", args=["c"])
    body = browser.get(address, {"as": "agent:Triage", "to": ""}).json()
    assert body == {"words": prospect("agent:Triage").words, "waits": True, "at_work": ""}
    assert browser.get(address, {"to": "agent:A\u202eB"}).json()["words"].startswith("A[U+202E]B does not run")


# The API, and the form without scripts.


def test_the_api_speaks_as_an_agent_and_tells_who_did(otto):
    browser = client_of(otto)
    body = {"sender": "agent:Triage", "recipient": "chat:c", "content": "Closed.", "client_id": "api", "reason": "test"}

    answer = browser.post("/api/v1/conversations/c/messages", body, content_type="application/json")

    assert answer.status_code == 201
    events = browser.get("/api/v1/conversations/c/events?limit=1").json()["items"]
    assert [(event["sender"], event["principal"]) for event in events] == [("agent:Triage", "user:otto")]
    assert events[0]["body"]["metadata"] == {"sent_by": "user:otto", "reason": "test"}


@pytest.mark.parametrize(
    ("more", "status", "field"),
    [({"reason": ""}, 400, "reason"), ({"sender": "user:ada"}, 400, "sender"), ({}, 403, None)],
)
def test_the_api_refuses_by_field(otto, more, status, field):
    stranger = person("olga", "operator")
    body = {"sender": "system", "recipient": "chat:c", "content": "Hi", "client_id": "1", "reason": "r"} | more

    answer = client_of(stranger).post("/api/v1/conversations/c/messages", body, content_type="application/json")

    assert (answer.status_code, answer.json()["error"].get("field")) == (status, field)


@pytest.mark.parametrize(
    ("chosen", "sender"),
    [
        ({"as": ""}, "user:otto"),
        ({"as": "agent:Triage"}, "agent:Triage"),
        ({"as": "other", "as_name": " agent:Far away "}, "agent:Far away"),
        ({"as": "system", "as_name": "left over"}, "system"),
    ],
)
def test_the_form_without_scripts_speaks_as_whom_it_says(otto, chosen, sender):
    form = {"to": "", "content": "Closed.", "client_id": "f", "reason": "by hand"} | chosen

    answer = client_of(otto).post("/api/v1/conversations/c/messages", form)

    assert answer.status_code == 302
    assert json.loads(Event.objects.filter(kind="message").latest("seq").body)["sender"] == sender


def test_an_agent_at_work_can_get_it_at_its_next_step(otto):
    assert prospect().at_work == ""
    say(otto)
    claimed = teamwork.claim("c")

    preview = prospect(when="next_step")
    assert (preview.words, preview.waits, preview.at_work) == (
        *("Dialogue gets your message at its next step.", False, "Dialogue"),
    )
    assert "Dialogue is working" in prospect().words
    assert prospect(to="agent:Triage", when="next_step").at_work == ""

    Run.objects.filter(id=claimed.run).update(status="waiting", reason="approval")
    assert prospect(when="next_step").words == "Dialogue gets your message at its next step, after the approval."
    control.pause(otto, "c")
    assert prospect(when="next_step").at_work == ""


def test_when_is_one_of_two_and_is_in_the_event(otto, client):
    client.force_login(otto)
    address = reverse("api-messages", args=["c"])
    words = {"recipient": "chat:c", "content": "Hello"}

    sent = client.post(address, words | {"client_id": "a", "when": "next_step"}, content_type="application/json")
    refused = client.post(address, words | {"client_id": "b", "when": "never"}, content_type="application/json")

    assert json.loads(Event.objects.get(seq=sent.json()["seq"]).body)["metadata"] == {"when": "next_step"}
    assert Run.objects.get(status="queued").at_next_step
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "when")
    with pytest.raises(Invalid, match="after_run, next_step"):
        post_message.post(otto, "c", recipient="chat:c", content="Hi", client_id="c", when="never")
    form = client.post(address, {"content": "And", "client_id": "d", "to": "", "when": "next_step"})
    assert form.status_code == 302
    assert Run.objects.filter(status="queued", at_next_step=True).count() == 2
