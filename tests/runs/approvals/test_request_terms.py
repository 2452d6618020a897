"""Terms of approval requests: policy rows tighten the settings; what the card, the badge and the inbox say of them;
several decided at once."""

import json
import re

import pytest
from django.core.management import call_command

from conversations.core.errors import Invalid, NotAllowed
from conversations.core.principals import SYSTEM
from conversations.events.log.rebuild import rebuild
from conversations.models import Approval, AuditEntry, Event, Policy
from conversations.realtime import state_topics
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide, inbox, live_requests, overdue_requests, pending_counts, request_terms
from conversations.runs.policy import edit_policy, file_format
from conversations.runs.policy.edit_policy import load_policies
from conversations.runs.policy.evaluate import PolicyRule
from tests.runs.approvals.test_decision_races import at_once
from tests.support import teamwork
from tests.support.agents_running import event_bodies
from tests.support.cast import audit_summary, client_of, last_entry
from tests.support.visits import text_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("town")]

PAST = "2020-01-01T00:00:00+00:00"
TO_AUDITOR = {"deadline": PAST, "on_expiry": "notify", "notify": "auditor"}
STRICT = PolicyRule(
    "", "pay", "ask", deadline_s=900, on_expiry="notify", notify="auditor", four_eyes=True, no_always=True
)


def words(person, address):
    answer = client_of(person).get(address)
    assert answer.status_code == 200
    return text_of(answer)


# Rows and settings


@pytest.mark.parametrize(
    ("rows", "config", "expected"),
    [
        ([], {}, (None, "wait", "admin", False, False)),
        ([STRICT], {}, (900, "notify", "auditor", True, True)),
        ([STRICT], {"approval_s": 60.0}, (60.0, "notify", "auditor", True, True)),
        ([STRICT], {"approval_s": 6000.0, "approval_expiry": "reject"}, (900, "reject", "admin", True, True)),
        (
            [PolicyRule("", "", "ask", on_expiry="wait")],
            {"approval_expiry": "notify", "approval_role": "viewer"},
            (None, "notify", "viewer", False, False),
        ),
        (
            [PolicyRule("a", "t", "ask", deadline_s=5), STRICT],
            {"four_eyes": True},
            (5, "notify", "auditor", True, True),
        ),
    ],
)
def test_rows_tighten_the_settings_and_never_loosen_them(settings, rows, config, expected):
    settings.CONFIG = settings.CONFIG.model_copy(update=config)

    assert tuple(request_terms.of_call(rows)) == expected


def test_the_file_holds_every_column_and_loads_them_back(people, tmp_path, capsys):
    load_policies(SYSTEM, [STRICT, PolicyRule("", "chat_send", "deny")])
    call_command("policy")
    file = tmp_path / "policy.json"
    file.write_text(capsys.readouterr().out)
    assert json.loads(file.read_text())["policies"][1] == {
        "tool": "pay", "rule": "ask", "deadline_s": 900, "on_expiry": "notify", "notify": "auditor",
        "four_eyes": True, "no_always": True,
    }  # fmt: skip

    Policy.objects.all().delete()
    call_command("policy", str(file))

    assert edit_policy.evaluate.stored()["", "pay"] == STRICT._replace(updated_by="system")
    assert audit_summary(last_entry()) == ("system", "load_policies", "policies", "done")


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ({"deadline_s": 0}, "deadline_s must be a whole number of seconds"),
        ({"deadline_s": "900"}, "deadline_s must be"),
        ({"deadline_s": True}, "deadline_s must be"),
        ({"on_expiry": "later"}, "on_expiry must be one of wait, notify, reject"),
        ({"on_expiry": "notify", "notify": "boss"}, "notify must be one of viewer"),
        ({"on_expiry": "wait", "notify": "admin"}, "notify must only be given with"),
        ({"four_eyes": "yes"}, "four_eyes must be true or false"),
    ],
)
def test_a_wrong_column_is_named(row, wrong):
    with pytest.raises(Invalid, match=re.escape(f"policies[0].{wrong}")):
        file_format.load({"format": file_format.FORMAT, "policies": [{"rule": "ask", **row}]})


def test_the_policy_page_sets_and_shows_them(people):
    client = client_of(people["admin"])
    form = {"tool": "pay", "rule": "ask", "deadline_s": "15 min", "on_expiry": "notify", "notify": "auditor"}

    answer = client.post("/policies/", form | {"four_eyes": "yes", "no_always": "yes"})

    assert answer.status_code == 302
    assert edit_policy.evaluate.stored()["", "pay"] == STRICT._replace(updated_by="user:ada")
    page = words(people["admin"], "/policies/")
    assert "Deadline 15 min, then it keeps waiting and auditor is notified." in page
    assert "Four eyes: requesters cannot approve their own. No auto-approval: a person decides on every call." in page
    edited = client.get("/policies/?edit=1&agent=&tool=pay").content.decode()
    assert 'name="deadline_s" maxlength="20" value="15 min"' in edited
    wrong = client.post("/policies/", form | {"deadline_s": "soon"})
    assert (wrong.status_code, b"Must be a duration such as" in wrong.content) == (422, True)
    assert json.loads(AuditEntry.objects.get(verb="set_policy").correlation)["deadline_s"] == "900"


# Four eyes


def test_four_eyes_hold_for_the_tools_that_the_policy_names(people):
    edit_policy.set_policy(people["admin"], PolicyRule("", "file_incident", "ask", four_eyes=True))
    strict = teamwork.ask(people["admin"], key="one")
    other = teamwork.ask(people["admin"], key="two", name="look")

    with pytest.raises(NotAllowed, match="four eyes"):
        decide.decide(people["admin"], strict.id, "approve")

    assert audit_summary(last_entry()) == ("user:ada", "decide", f"approval:{strict.id}", "refused")
    assert decide.decide(people["admin"], other.id, "approve").decided_by == "user:ada"
    page = words(people["admin"], f"/approvals/{strict.id}/")
    assert "You wrote or sent the message behind this run, so someone else has to decide" in page
    assert "Four eyes , excludes ada" in page


def test_the_badge_counts_what_this_person_can_still_decide(people):
    edit_policy.set_policy(people["admin"], PolicyRule("", "file_incident", "ask", four_eyes=True))
    teamwork.ask(people["admin"], key="one")
    over = teamwork.ask(people["operator"], key="two")
    teamwork.ask(people["operator"], key="three")
    stop_and_rerun.cancel_run(people["operator"], over.run)

    now = pending_counts.pending_counts()

    assert (now["waiting"], now["barred"]["user:ada"], now["escalated"]) == (2, 1, {})
    assert "waiting for approval: 1" in words(people["admin"], "/account/")
    assert "waiting for approval: 2" in words(people["approver"], "/account/")
    assert state_topics.live_requests.SOURCE.waiting_counts() == now


# Time is up


@pytest.mark.slow
def test_a_role_is_told_once_on_every_page_and_first_in_the_inbox(people):
    late = teamwork.ask(people["operator"], key="late", **TO_AUDITOR)
    teamwork.ask(people["operator"], key="new")

    outcomes, _ = at_once(*[overdue_requests.handle_due] * 3)

    assert sorted(outcomes) == [[], [], [late.id]]
    (event,) = event_bodies("approval.escalated", "late")
    assert (event["to"], Approval.objects.get(id=late.id).escalated_to) == ("auditor", "auditor")
    assert AuditEntry.objects.filter(verb="escalate").count() == 1
    assert [card.row.id for card in inbox.page(status="pending")[0]] == [late.id, "ask-new"]
    assert pending_counts.pending_counts()["escalated"] == {"auditor": 1}
    assert 'data-escalated aria-label="Escalated">' in client_of(people["auditor"]).get("/account/").content.decode()
    hidden = client_of(people["approver"]).get("/account/").content.decode()
    assert 'data-escalated aria-label="Escalated" hidden>' in hidden
    assert "escalated to auditor" in words(people["viewer"], "/approvals/")
    decide.decide(people["approver"], late.id, "approve")
    assert pending_counts.pending_counts()["escalated"] == {}


def test_an_escalation_changes_the_live_row(people):
    approval = teamwork.ask(people["operator"], key="late", **TO_AUDITOR)
    before = live_requests.SOURCE.versions(10)
    overdue_requests.handle_due()

    (row,) = live_requests.SOURCE.changed_rows(["late"], {key: version for key, (_, version) in before.items()})

    assert (row["key"], row["escalated"], row["version"] > approval.asked_seq) == (approval.id, "auditor", True)


def test_each_question_ends_as_it_says_itself(people):
    teamwork.ask(people["operator"], key="one", deadline=PAST, on_expiry="reject")
    teamwork.ask(people["operator"], key="two", deadline=PAST, on_expiry="wait")
    teamwork.ask(people["operator"], key="three", deadline="2999-01-01T00:00:00+00:00", on_expiry="reject")
    teamwork.ask(people["operator"], key="four", deadline="whenever", on_expiry="reject")

    overdue_requests.handle_due()

    statuses = dict(Approval.objects.values_list("conversation__key", "status"))
    assert statuses == {"one": "expired", "two": "pending", "three": "pending", "four": "pending"}
    assert dict(Approval.objects.values_list("conversation__key", "escalated_to"))["two"] == "approver"
    before = list(Approval.objects.order_by("id").values())
    list(rebuild())
    assert list(Approval.objects.order_by("id").values()) == before


def test_the_card_says_age_deadline_and_what_expiry_does(people):
    edit_policy.set_policy(people["admin"], PolicyRule("", "file_incident", "ask", "destructive", "It costs."))
    teamwork.ask(people["operator"], deadline="2999-01-01T00:00:00+00:00", on_expiry="reject")
    teamwork.ask(people["operator"], key="open")

    page = words(people["viewer"], "/approvals/")

    assert "Destructive , by policy for file_incident by every agent: It costs." in page
    assert "Deadline 1 Jan 2999 00:00:00 , then the call is rejected" in page
    assert "No deadline" in words(people["viewer"], "/approvals/ask-open/")
    item = client_of(people["viewer"]).get("/api/v1/approvals/ask-flood").json()
    assert (item["deadline"], item["on_expiry"], item["four_eyes"]) == ("2999-01-01T00:00:00+00:00", "reject", False)


# Several at once


def test_several_are_decided_each_by_itself_and_each_outcome_is_told(people):
    ids = [teamwork.ask(people["operator"], key=key).id for key in ("one", "two", "three")]
    decide.decide(people["admin"], ids[1], "approve")
    body = {"decision": "reject", "approvals": [*ids, "none", ids[0]], "message": "not now"}

    answer = client_of(people["approver"]).post("/api/v1/approvals/decisions", body, "application/json")

    items = answer.json()["items"]
    assert [(item["approval_id"], item["status"]) for item in items] == [
        (ids[0], 200),
        (ids[1], 409),
        (ids[2], 200),
        ("none", 404),
    ]
    assert (items[1]["error"]["by"], items[1]["error"]["decision"]) == ("user:ada", "approve")
    assert Event.objects.filter(kind="approval.decided").count() == 3
    done = AuditEntry.objects.filter(verb="decide", principal="user:april")
    assert sorted(done.values_list("outcome", flat=True)) == ["done", "done", "refused"]
    assert [body["message"] for body in event_bodies("approval.decided", "one")] == ["not now"]


@pytest.mark.parametrize(
    "body",
    [{"decision": "edit", "approvals": ["a"]}, {"decision": "approve", "approvals": []}, {"decision": "approve"}],
)
def test_a_request_that_is_none_decides_nothing(people, body):
    teamwork.ask(people["operator"])

    answer = client_of(people["approver"]).post("/api/v1/approvals/decisions", body, "application/json")

    assert answer.status_code == 400
    with pytest.raises(Invalid):
        decide.decide_each(people["approver"], ["a"] * 1, "respond")
    assert Approval.objects.get().status == "pending"
