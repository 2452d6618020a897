"""Auto-approval rules on the pages and by the API: made with a question or by hand, listed with uses, revoked."""

import json
import time

import pytest

from conversations.models import Approval, AuditEntry, AutoApprovalRule, Role
from conversations.runs.approvals import auto_approval, auto_approval_edit
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule
from tests.dashboard.pages.test_approvals_page import ASKED
from tests.dashboard.pages.test_approvals_page import people as people  # a fixture
from tests.support import teamwork
from tests.support.cast import client_of
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db(transaction=True)

RULES = "/api/v1/approval-rules"


def get(person, address="/approvals/rules/"):
    answer = client_of(person).get(address)
    assert answer.status_code == 200, answer.content
    return answer


def press(person, approval, **form):
    return client_of(person).post(f"/approvals/{approval.id}/", {"decide": "always", "match": "exact"} | form)


def send(person, address, **body):
    return client_of(person).post(address, body, "application/json")


# The card's form


def test_the_card_offers_every_scope(people):
    approval = teamwork.ask(people["operator"], **ASKED)

    page = get(people["approver"], f"/approvals/{approval.id}/").content.decode()

    choices = ('name="match" value="exact" checked', 'name="match" value="some"', 'name="same" value="0" checked')
    for part in (*choices, 'name="whose" value="any"', 'name="uses"', 'name="lasts"', 'value="always"'):
        assert part in page
    assert 'value="always"' not in get(people["viewer"], f"/approvals/{approval.id}/").content.decode()


def test_pressed_it_approves_makes_a_rule_and_takes_along_what_fits(people):
    first = teamwork.ask(people["operator"], key="one", **ASKED)
    second = teamwork.ask(people["operator"], key="two", **ASKED)
    teamwork.ask(people["operator"], key="three", **ASKED | {"args": ASKED["args"] | {"street": "Elm"}})

    answer = press(people["approver"], first, match="some", same="0", whose="any", uses="7", lasts="2 h", reason="ok")

    made = AutoApprovalRule.objects.get()
    assert answer["Location"] == f"/approvals/{first.id}/?always=1"
    assert (made.agent, made.is_exact, json.loads(made.arguments)) == ("", False, {"street": "Mill"})
    assert (made.uses, made.used, made.reason) == (7, 1, "ok")
    assert 7100e6 < made.until - time.time_ns() // 1000 <= 7200e6
    assert list(Approval.objects.filter(status="decided").values_list("id", "rule").order_by("asked_at")) == [
        (first.id, None),
        (second.id, made.id),
    ]
    page_text = text_of(get(people["approver"], answer["Location"]))
    assert "Matching calls will be approved automatically from now on. Waiting calls approved as well: 1." in page_text
    assert "approved by april" in page_text
    assert "and created an auto-approval rule" in page_text


@pytest.mark.parametrize(
    ("form", "words_of"),
    [
        ({"uses": "many"}, "must be a whole number"),
        ({"lasts": "long"}, "must be a duration such as"),
        ({"lasts": "99999 d"}, "within ten years"),
    ],
)
def test_a_wrong_scope_is_said_and_what_was_entered_stays(people, form, words_of):
    approval = teamwork.ask(people["operator"], **ASKED)

    answer = press(people["approver"], approval, **form)

    assert answer.status_code == 422
    assert words_of in text_of(answer)
    assert f'value="{next(iter(form.values()))}"' in answer.content.decode()
    assert Approval.objects.get().status == "pending"


def test_a_call_that_destroys_or_that_no_rule_may_answer_offers_less(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    edit_policy.set_policy(people["admin"], PolicyRule("", "city.file", "ask", "destructive"))
    page = get(people["approver"], f"/approvals/{approval.id}/").content.decode()
    assert 'name="same"' not in page
    assert 'name="whose"' not in page

    edit_policy.set_policy(people["admin"], PolicyRule("", "city.file", "ask", no_always=True))
    assert "The policy requires a person to decide on every one of these calls" in text_of(
        get(people["approver"], f"/approvals/{approval.id}/")
    )
    assert press(people["approver"], approval).status_code == 422


def test_arguments_that_are_no_json_can_be_seen_as_they_were_sent(people):
    approval = teamwork.ask(people["operator"], **ASKED | {"args": None, "args_raw": "{street: <b>Elm"})

    page = get(people["approver"], f"/approvals/{approval.id}/")

    assert "{street: &lt;b&gt;Elm</code></pre>" in page.content.decode()
    assert "No rule can match these arguments" in text_of(page)


# The list


def test_the_list_tells_whose_word_it_is_how_often_and_what_it_approved(people):
    first = teamwork.ask(people["operator"], key="one", **ASKED)
    teamwork.ask(people["operator"], key="two", **ASKED)
    scope = AutoApprovalScope(is_exact=False, arguments={"danger": False}, uses=3)
    made = auto_approval_edit.approve_and_make_rule(people["approver"], first.id, scope, reason="<b>harmless</b>")
    auto_approval.approve_waiting()

    page = get(people["viewer"])

    page_text = text_of(page)
    for part in ("city.file by Dialogue active", "Used 1 of 3", "Until revoked", "Created by april", "<b>harmless</b>",
                 "Recently approved"):  # fmt: skip
        assert part in page_text
    assert f'href="/approvals/{first.id}/"' in page.content.decode()
    assert 'href="/conversations/two/?event=' in page.content.decode()
    assert "Revoke" not in page_text
    assert "Revoke" in text_of(get(people["approver"]))
    assert made.id in get(people["viewer"], f"/approvals/rules/?rule={made.id}").content.decode()
    assert client_of(people["viewer"]).get("/approvals/rules/?view=none").status_code == 404


def lost_right(people, made):
    Role.objects.filter(user=people["approver"]).delete()


def no_always(people, made):
    edit_policy.set_policy(people["admin"], PolicyRule("", "city.file", "ask", no_always=True))


def denied(people, made):
    edit_policy.set_policy(people["admin"], PolicyRule("", "city.file", "deny"))


def used_up(people, made):
    AutoApprovalRule.objects.update(uses=1, used=1)


def over(people, made):
    AutoApprovalRule.objects.update(until=5)


def revoked(people, made):
    auto_approval_edit.revoke_rule(people["admin"], made.id)


@pytest.mark.parametrize(
    ("deed", "view", "why"),
    [
        (lost_right, "", "user:april may no longer decide"),
        (no_always, "", "The policy requires a person to decide on every call"),
        (denied, "", "Policy denies these calls"),
        (used_up, "?view=ended", "Used up"),
        (over, "?view=ended", "Expired"),
        (revoked, "?view=ended", "Revoked by user:ada"),
    ],
)
def test_why_a_rule_approves_nothing_is_said(people, deed, view, why):
    approval = teamwork.ask(people["operator"], **ASKED)
    made = auto_approval_edit.approve_and_make_rule(people["approver"], approval.id, AutoApprovalScope())

    deed(people, made)

    assert why in text_of(get(people["viewer"], f"/approvals/rules/{view}"))


def test_a_rule_is_revoked_on_the_page_once(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    made = auto_approval_edit.approve_and_make_rule(people["approver"], approval.id, AutoApprovalScope())
    form = {"rule": made.id, "reason": "enough"}
    assert client_of(people["operator"]).post("/approvals/rules/revocations/", form).status_code == 403

    answers = [client_of(people["admin"]).post("/approvals/rules/revocations/", form) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [302, 409]
    assert "ada already revoked this rule" in text_of(answers[1])
    assert AuditEntry.objects.get(verb="revoke_rule", outcome="done").reason == "enough"
    assert "No active rules" in text_of(get(people["viewer"]))


# The API


def test_the_api_makes_lists_and_revokes(people):
    first_approval = teamwork.ask(people["operator"], key="one", **ASKED)
    two = teamwork.ask(people["operator"], key="two", **ASKED)
    assert send(people["operator"], RULES, approval_id=first_approval.id).status_code == 403

    made = send(people["approver"], RULES, approval_id=first_approval.id, uses=2, until="2999-01-01T00:00:00Z")
    assert (made.status_code, made.json()["error"]["field"]) == (400, "until")
    made = send(people["approver"], RULES, approval_id=first_approval.id, uses=2, reason="why")

    body = made.json()
    assert made.status_code == 201
    assert (body["approved"], body["used"], body["match"], body["made_by"]) == ([two.id], 1, "exact", "user:april")
    assert (body["tool"], body["agent"], body["arguments"]) == ("city.file", "Dialogue", ASKED["args"])
    listed = client_of(people["viewer"]).get(RULES).json()
    assert [item["rule_id"] for item in listed["items"]] == [body["rule_id"]]
    assert client_of(people["viewer"]).get(f"/api/v1/approvals/{two.id}").json()["rule"] == body["rule_id"]
    assert send(people["approver"], RULES, approval_id=first_approval.id).status_code == 409

    address = f"{RULES}/{body['rule_id']}/revocation"
    assert send(people["approver"], address, reason="enough").json()["revoked_by"] == "user:april"
    assert send(people["admin"], address).status_code == 409
    assert client_of(people["viewer"]).get(f"{RULES}?state=ended").json()["items"][0]["idle"] == "Revoked by user:april"
    assert send(people["admin"], f"{RULES}/none/revocation").status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"tool": "file_incident"}, "arguments"),
        ({"tool": "nothing", "arguments": {}}, "tool"),
        ({"tool": "file_incident", "arguments": {}, "uses": 0}, "uses"),
        ({"tool": "file_incident", "arguments": {}, "match": "like"}, "match"),
    ],
)
def test_a_rule_by_hand_has_to_say_what_it_is_about(people, body, field):
    answer = send(people["approver"], RULES, **body)

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert send(people["approver"], RULES, tool="file_incident", arguments={}, match="partial").status_code == 201


def test_hostile_words_stay_words(people):
    odd = "<img src=x onerror=alert(1)>\u202e"
    more = {"qualified_name": odd, "lookup_key": odd, "agent": odd, "args": {odd: odd}, "args_raw": odd}
    approval = teamwork.ask(people["operator"], **ASKED | more)
    page = get(people["approver"], f"/approvals/{approval.id}/").content.decode()

    auto_approval_edit.approve_and_make_rule(people["approver"], approval.id, AutoApprovalScope(), reason=odd)

    for drawn in (page, get(people["viewer"]).content.decode()):
        assert "&lt;img src=x onerror" in drawn
        assert "<img" not in drawn
        assert "\u202e" not in drawn
