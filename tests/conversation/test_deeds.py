"""What people do over pages and API: speak, decide, run again, stop. Per role, once each, told to who comes second."""

import json

import pytest
from django.urls import reverse

from conversations.models import Approval, AuditEntry, Conversation, Event, Run
from tests.support import teamwork
from tests.support.cast import audit_summary, last_entry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]
WORDS = {"recipient": "agent:Dialogue", "content": "Water!\nOn Elm Street", "client_id": "k1"}


def post(client, address, body=None):
    return client.post(address, body or {}, content_type="application/json")


def speak(client, key="flood", **more):
    return post(client, reverse("api-messages", args=[key]), WORDS | more)


def decide(client, approval, decision="approve", **more):
    return post(client, f"/api/v1/approvals/{approval.id}/decision", {"decision": decision, **more})


# who may


@pytest.mark.parametrize(("role", "status"), [("operator", 201), ("admin", 201), ("viewer", 403), ("auditor", 403)])
def test_a_message_takes_the_right_to_send(browsers, role, status):
    assert speak(browsers[role]).status_code == status
    done, refused = ("send", "conversation:flood", "done"), "refused"
    assert audit_summary(last_entry())[1:] == done if status == 201 else audit_summary(last_entry())[-1] == refused


# speaking


def test_first_words_open_a_conversation_and_name_it(browsers):
    answer = speak(browsers["operator"])

    conversation = Conversation.objects.get()
    assert (conversation.title, conversation.handler) == ("Water!", "Dialogue")
    assert answer.json() | {"envelope_id": ""} == {"envelope_id": "", "seq": 2, "url": "/conversations/flood/"}
    assert Run.objects.get().agent == "Dialogue"


def test_a_long_first_line_is_cut_between_words(browsers):
    speak(browsers["operator"], content="water " * 40)

    title = Conversation.objects.get().title
    assert len(title) <= 80
    assert title.endswith("water…")


def test_the_same_client_id_is_said_once(browsers):
    first, second = speak(browsers["operator"]), speak(browsers["operator"])

    assert first.json() == second.json()
    assert Event.objects.filter(kind="message").count() == Event.objects.filter(kind="conversation.opened").count() == 1
    assert speak(browsers["operator"], content="other words").json()["error"]["code"] == "id_reused"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("recipient", "everyone"), ("recipient", "agent:"), ("recipient", "chat:elsewhere")),
        *(("content", " \n"), ("client_id", "")),
        *(("sender", "user:ada"), ("content", "x" * 100_001)),
    ],
)
def test_what_is_wrong_is_said_by_field(browsers, field, value):
    answer = speak(browsers["operator"], **{field: value})

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert not Event.objects.exists()


def test_a_form_without_scripts_leads_back_to_the_words(browsers):
    form = {"to": "", "content": "one\r\ntwo", "client_id": "f1"}
    speak(browsers["operator"])

    answer = browsers["operator"].post(reverse("api-messages", args=["flood"]), form)

    message = json.loads(Event.objects.filter(kind="message").latest("seq").body)
    assert (message["recipient"], message["content"]) == ("chat:flood", "one\ntwo")
    assert (answer.status_code, answer["Location"]) == (302, "/conversations/flood/#e4")
    assert Run.objects.count() == 2


def test_a_form_that_is_refused_says_so_as_a_page(browsers):
    answer = browsers["operator"].post(reverse("api-messages", args=["flood"]), {"content": " ", "client_id": "f1"})

    assert answer.status_code == 400
    assert "your message is still there" in answer.content.decode()
    refused = browsers["viewer"].post(reverse("api-messages", args=["flood"]), {"content": "x", "client_id": "f1"})
    assert refused.status_code == 403
    assert AuditEntry.objects.filter(outcome="refused", principal="user:vera").count() == 1


# deciding


def test_who_comes_second_learns_who_was_first(team, browsers):
    approval = teamwork.ask(team["operator"])
    first = decide(browsers["approver"], approval, "reject", message="not today")

    second = decide(browsers["admin"], approval)

    error = second.json()["error"]
    assert (first.status_code, second.status_code) == (200, 409)
    assert (error["code"], error["by"], error["decision"]) == ("already_decided", "user:april", "reject")
    assert error["at"] == first.json()["at"]
    assert first.json()["run_id"] == approval.run


@pytest.mark.parametrize("body", [{}, {"decision": "maybe"}, {"decision": "approve", "message": 3}])
def test_a_decision_that_is_none_is_refused(team, browsers, body):
    approval = teamwork.ask(team["operator"])

    assert post(browsers["approver"], f"/api/v1/approvals/{approval.id}/decision", body).status_code == 400
    assert post(browsers["approver"], "/api/v1/approvals/nowhere/decision", {"decision": "approve"}).status_code == 404


def test_the_buttons_of_the_page_decide_and_lead_back(team, browsers):
    approval = teamwork.ask(team["operator"])
    address, form = f"/approvals/{approval.id}/", {"decide": "reject", "message": "not today", "back": "conversation"}

    answer = browsers["approver"].post(address, form)

    approval.refresh_from_db()
    assert answer["Location"] == f"/conversations/flood/?event={approval.asked_seq}#e{approval.asked_seq}"
    assert (approval.decision, approval.decided_by) == ("reject", "user:april")
    assert json.loads(Event.objects.get(kind="approval.decided").body)["message"] == "not today"
    assert browsers["approver"].post(address, form).status_code == 409
    assert browsers["approver"].post(address, {}).status_code == 409
    assert browsers["operator"].post(address, form).status_code == 403


# running again


def test_what_failed_is_run_again_on_the_same_words(team, browsers):
    run = Run.objects.get(id=teamwork.fail(team["operator"]))

    answer = post(browsers["operator"], f"/api/v1/runs/{run.id}/again")

    new = Run.objects.get(id=answer.json()["run_id"])
    assert (new.status, new.input_seq, new.agent) == ("queued", run.input_seq, run.agent)
    assert post(browsers["operator"], f"/api/v1/runs/{new.id}/again").status_code == 409
    assert post(browsers["operator"], "/api/v1/runs/nowhere/again").status_code == 404


def test_the_button_of_the_page_runs_again_and_leads_there(team, browsers):
    run = teamwork.fail(team["operator"])

    answer = browsers["operator"].post("/runs/again/", {"run": run})

    new = Run.objects.get(status="queued")
    assert answer["Location"] == f"/conversations/flood/?event={new.queued_seq}#e{new.queued_seq}"


def test_a_run_that_waits_is_stopped(team, browsers):
    approval = teamwork.ask(team["operator"])

    assert post(browsers["operator"], f"/api/v1/runs/{approval.run}/cancellation").json() == {"run_id": approval.run}

    assert Run.objects.get().status == "cancelled"
    assert Approval.objects.open().count() == 0
