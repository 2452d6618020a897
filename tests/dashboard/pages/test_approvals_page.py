"""The approvals pages and their API: what waits, one question, decisions by forms, rows of the live topic."""

import json
import re
from datetime import datetime, timedelta

import pytest

from conversations.core.micros import to_datetime
from conversations.models import Approval, ToolSchema
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide, inbox, live_requests
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule
from tests.support import teamwork
from tests.support.cast import cast, client_of
from tests.support.visits import words_of

pytestmark = pytest.mark.django_db

SCHEMA = "ab" * 32
PARAMETERS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["street", "severity", "danger", "house"],
    "properties": {
        "street": {"type": "string", "description": "Where it is"},
        "severity": {"type": "string", "enum": ["low", "high"]},
        "danger": {"type": "boolean"},
        "house": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
ASKED = {
    "name": "file",
    "namespace": "city",
    "qualified_name": "city.file",
    "lookup_key": "namespaced:city.file",
    "origin": "mcp",
    "mcp_server": "city-desk",
    "schema": SCHEMA,
    "effect": "unsafe",
    "args": {"street": "Mill", "severity": "low", "danger": False, "house": None, "tags": ["water"]},
}
FORM = {"arg.street": "Elm", "arg.severity": '"high"', "arg.danger": "true", "arg.house": "7", "arg.tags": '["a"]'}


@pytest.fixture
def people():
    teamwork.team()
    body = json.dumps({"name": "city.file", "params_json_schema": PARAMETERS})
    ToolSchema.objects.create(hash=SCHEMA, name="city.file", body=body)
    return cast()


def posted(person, approval, form, headers=None):
    return client_of(person).post(f"/approvals/{approval}/", form, headers=headers)


def problems_of(answer):
    """What stands beside the fields of arguments, by their names."""
    assert answer.status_code == 422
    fields = re.findall(r'<div class="field">(.*?)</div>', answer.content.decode(), re.S)
    hint = r'-problem" data-tone="failed">(.*?)<'
    hints = {re.search(r'name="arg\.(\w+)"', field): re.search(hint, field) for field in fields}
    assert all(('aria-invalid="true"' in field) is ("-problem" in field) for field in fields)
    return {name[1]: problem[1] for name, problem in hints.items() if name and problem}


def rows_of(html):
    return re.findall(r'<div class="ask" data-item data-key="([^"]*)"', html)


def get(person, address):
    answer = client_of(person).get(address)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def test_the_page_shows_what_waits_with_identity_effect_and_why(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    edit_policy.set_policy(people["admin"], PolicyRule("", "city.file", "allow", "destructive"))

    html = get(people["viewer"], "/approvals/")

    for part in ("Dialogue wants to call", "It goes to the city.", "city-desk", "namespaced:city.file", "destructive"):
        assert part in words_of(html)
    assert f'href="/approvals/{approval.id}/"' in html
    assert "waiting for approval: </span><span>1</span>" in get(people["approver"], "/approvals/")


def test_lists_tell_apart_what_waits_and_what_was_decided(people):
    first = teamwork.ask(people["operator"], key="one", **ASKED)
    second = teamwork.ask(people["operator"], key="two", **ASKED)
    third = teamwork.ask(people["operator"], key="three", **ASKED)
    decide.decide(people["approver"], first.id, "reject")
    stop_and_rerun.cancel_run(people["operator"], third.run)

    assert {card.row.id for card in inbox.page(status="pending")[0]} == {second.id}
    assert rows_of(get(people["viewer"], "/approvals/?view=decided")) == [first.id]
    assert len(rows_of(get(people["viewer"], "/approvals/?view=all"))) == 3
    assert client_of(people["viewer"]).get("/approvals/?view=none").status_code == 404


def test_a_question_that_cannot_be_acted_on_is_not_counted(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    stop_and_rerun.cancel_run(people["operator"], approval.run)

    assert live_requests.SOURCE.waiting_counts()["waiting"] == 0
    assert "Nothing is waiting for approval" in get(people["viewer"], "/approvals/")


def test_a_request_whose_run_is_over_stands_apart_and_says_why(people):
    stopped, unfit, waiting = (teamwork.ask(people["operator"], key=key, **ASKED) for key in ("one", "two", "three"))
    stop_and_rerun.cancel_run(people["operator"], stopped.run)
    decide.decide(people["approver"], unfit.id, "approve")
    stop_and_rerun.end_as_incompatible(unfit.run, "the tool changed")

    html = get(people["viewer"], "/approvals/")

    over = html[html.index("<div data-over>") :]
    assert rows_of(html[: html.index("<div data-over>")]) == [waiting.id]
    assert rows_of(over) == [unfit.id, stopped.id]
    assert "approved by april; run could not resume: the tool changed" in words_of(over)
    assert "withdrawn by otto; run stopped" in words_of(over)
    assert "data-over" not in get(people["viewer"], "/approvals/?view=decided")


def test_only_who_may_decide_reads_in_the_tab_how_many_wait(people):
    teamwork.ask(people["operator"], key="one", **ASKED)

    titles = {role: get(people[role], "/approvals/").partition("<title>")[2][:4] for role in ("viewer", "approver")}

    assert titles == {"viewer": "Appr", "approver": "(1) "}


@pytest.mark.slow
def test_the_head_says_how_many_wait_and_since_when_the_oldest_does(people):
    edit_policy.set_policy(people["admin"], PolicyRule("", "city.file", "ask", four_eyes=True))
    assert " data-approvals-waiting hidden" in get(people["viewer"], "/approvals/")
    first = teamwork.ask(people["operator"], key="one", **ASKED)
    teamwork.ask(people["admin"], key="two", **ASKED)
    Approval.objects.filter(id=first.id).update(asked_at=first.asked_at - 720_000_000)

    assert "Approvals 2 waiting , 0 excluded by four eyes , oldest 12 min" in words_of(
        get(people["viewer"], "/approvals/")
    )
    assert "Approvals 2 waiting , 1 excluded by four eyes" in words_of(get(people["admin"], "/approvals/"))
    now = live_requests.SOURCE.waiting_counts()
    assert datetime.fromisoformat(now["oldest"]) == to_datetime(first.asked_at) - timedelta(minutes=12)


def test_what_the_agent_did_lately_stands_beside_its_question(people):
    first = teamwork.ask(people["operator"], key="one", **ASKED)
    teamwork.go_on(decide.decide(people["approver"], first.id, "approve"))
    teamwork.ask(people["operator"], key="two", **ASKED)

    html = words_of(get(people["viewer"], "/approvals/"))

    assert "Recent calls by Dialogue" in html
    assert "city.file done" in html


def test_the_form_has_a_field_for_every_argument_and_runs_with_what_was_entered(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    html = get(people["approver"], f"/approvals/{approval.id}/")
    for part in ('name="arg.street" value="Mill"', '<option value="&#34;low&#34;" selected>', 'name="arg.tags"'):
        assert part in html

    answer = client_of(people["approver"]).post(
        f"/approvals/{approval.id}/", {**FORM, "decide": "fields", "reason": "why"}
    )

    assert answer.status_code == 302
    decided = json.loads(decide.Event.objects.get(kind="approval.decided").body)
    assert decided["args"] == {"street": "Elm", "severity": "high", "danger": True, "house": 7, "tags": ["a"]}
    assert (decided["decision"], decided["reason"]) == ("edit", "why")
    assert "approved with edits by april" in words_of(get(people["approver"], f"/approvals/{approval.id}/"))


@pytest.mark.parametrize(
    ("posted", "wrong"),
    [
        ({"decide": "fields", **FORM, "arg.house": "x"}, "The field house must be a number"),
        ({"decide": "fields", **FORM, "arg.house": "1.5"}, "Argument house: 1.5 is not valid"),
        ({"decide": "raw", "raw": "{"}, "must be a JSON object"),
        ({"decide": "other"}, "must be one of"),
    ],
)
def test_wrong_input_is_said_and_what_was_entered_stays(people, posted, wrong):
    approval = teamwork.ask(people["operator"], **ASKED)

    answer = client_of(people["approver"]).post(f"/approvals/{approval.id}/", posted)

    html = answer.content.decode()
    assert (answer.status_code, Approval.objects.get().status) == (422, "pending")
    assert wrong in words_of(html)
    if "arg.house" in posted:
        assert f'value="{posted["arg.house"]}"' in html


def test_each_wrong_field_says_what_is_wrong_with_it(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    form = {**FORM, "decide": "fields"}

    parsed = posted(people["approver"], approval.id, form | {"arg.house": "x", "arg.tags": "["})
    fitted = posted(people["approver"], approval.id, form | {"arg.house": "1.5", "arg.danger": ""})

    assert problems_of(parsed) == {"house": "Must be a number", "tags": "Must be JSON"}
    assert set(problems_of(fitted)) == {"house", "danger"}
    assert problems_of(fitted)["danger"] == "Is required"
    assert Approval.objects.get().status == "pending"


def test_approving_as_sent_never_drops_edits(people):
    approval = teamwork.ask(people["operator"], **ASKED)

    refused = posted(people["approver"], approval.id, {**FORM, "decide": "approve"})
    untouched = {"arg.street": "Mill", "arg.severity": '"low"', "arg.danger": "false", "arg.house": ""}
    taken = posted(people["approver"], approval.id, untouched | {"arg.tags": '["water"]', "decide": "approve"})

    assert refused.status_code == 422
    assert "You edited the arguments: choose Approve with edits" in words_of(refused.content.decode())
    assert (taken.status_code, Approval.objects.get().decision) == (302, "approve")


def test_a_script_is_answered_with_the_card(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    as_script = {"X-Requested-With": "fetch"}

    wrong = posted(people["approver"], approval.id, {"decide": "raw", "raw": "{"}, as_script)
    done = posted(people["approver"], approval.id, {"decide": "reject", "message": "No."}, as_script)
    again = posted(people["approver"], approval.id, {"decide": "approve"}, as_script)
    other = posted(people["admin"], approval.id, {"decide": "approve"}, as_script)

    assert [answer.status_code for answer in (wrong, done, again, other)] == [422, 200, 409, 409]
    assert [answer.json()["done"] for answer in (wrong, done, again, other)] == [False, True, False, False]
    assert "<form" in wrong.json()["html"]
    assert done.json()["words"] == "Rejected: city.file."
    assert "rejected by april" in words_of(done.json()["html"])
    assert again.json()["words"] == "You already decided this: reject."
    assert other.json()["words"].startswith("april already decided: reject, at 20")
    assert "<form" not in other.json()["html"]


@pytest.mark.parametrize(
    "address", ["/approvals/", "/approvals/{id}/", "/approvals/{id}/?part=form", "/conversations/flood/"]
)
def test_the_same_form_stands_everywhere_for_who_may_decide_and_a_line_for_others(people, address):
    approval = teamwork.ask(people["operator"], **ASKED)
    address = address.format(id=approval.id)

    for role, may in (("approver", True), ("admin", True), ("operator", False), ("viewer", False)):
        page = get(people[role], address)

        assert (f'action="/approvals/{approval.id}/"' in page) is may
        assert ('name="arg.street"' in page) is may
        assert ("Only approvers and admins can decide on this request." in page) is not may
        assert "Unsafe , set in team code. It has side effects" in words_of(page)


def test_whoever_wrote_the_input_is_told_that_somebody_else_decides(people, settings):
    settings.CONFIG = settings.CONFIG.model_copy(update={"four_eyes": True})
    approval = teamwork.ask(people["admin"], **ASKED)

    own, other = (
        get(people["admin"], f"/approvals/{approval.id}/"),
        get(people["approver"], f"/approvals/{approval.id}/"),
    )

    assert "someone else has to decide (four eyes)" in words_of(own)
    assert f'action="/approvals/{approval.id}/"' not in own
    assert f'action="/approvals/{approval.id}/"' in other


def test_a_denied_call_offers_no_approval_in_the_transcript_either(people):
    teamwork.ask(people["operator"], **ASKED)
    edit_policy.set_policy(people["admin"], PolicyRule("", "city.file", "deny"))

    page = get(people["approver"], "/conversations/flood/")

    assert "Policy denies this call" in page
    assert re.findall(r'name="decide" value="(\w+)"', page) == ["reject", "respond"]


def test_who_is_late_is_told_so_on_the_page(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    decide.decide(people["approver"], approval.id, "reject")

    answer = client_of(people["admin"]).post(f"/approvals/{approval.id}/", {"decide": "respond", "output": "x"})

    assert answer.status_code == 409
    assert "april already decided: reject, at 20" in words_of(answer.content.decode())


def test_arguments_that_are_no_json_are_shown_as_they_came(people):
    teamwork.ask(people["operator"], args=None, args_raw='{"street": tru')

    assert "tru" in get(people["approver"], "/approvals/")


def test_the_api_answers_questions_and_one_of_them(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    browser = client_of(people["viewer"])

    listed = browser.get("/api/v1/approvals?status=pending").json()
    item = browser.get(f"/api/v1/approvals/{approval.id}").json()

    assert listed == {"items": [item], "cursor": None}
    assert (item["qualified_name"], item["arguments"]["street"], item["by"]) == ("city.file", "Mill", None)
    decide.decide(people["approver"], approval.id, "approve")
    assert browser.get("/api/v1/approvals?status=pending").json()["items"] == []
    assert browser.get(f"/api/v1/approvals/{approval.id}").json()["by"] == "user:april"
    assert browser.get("/api/v1/approvals?status=odd").status_code == 400
    assert browser.get("/api/v1/approvals/none").status_code == 404


def test_pages_of_the_list_go_on_where_the_last_one_ended(people):
    approvals = [teamwork.ask(people["operator"], key=f"c{n}", **ASKED).id for n in range(5)]

    first, cursor = inbox.page(limit=3)
    rest, end = inbox.page(limit=3, before=cursor)

    assert sorted(card.row.id for card in [*first, *rest]) == sorted(approvals)
    assert end is None


def test_only_what_changed_is_told_to_those_who_follow(people):
    approval = teamwork.ask(people["operator"], **ASKED)
    teamwork.ask(people["operator"], key="other", **ASKED)
    versions = {row["key"]: row["version"] for row in live_requests.SOURCE.newest_rows(100)}
    assert live_requests.SOURCE.changed_rows(["flood", "other"], versions) == []

    decide.decide(people["approver"], approval.id, "approve")
    (row,) = live_requests.SOURCE.changed_rows(["flood", "other"], versions)

    assert (row["key"], row["status"]) == (approval.id, "decided")
    assert row["version"] > versions[approval.id]
    assert {key: version for key, (_, version) in live_requests.SOURCE.versions(100).items()} == {
        **versions,
        approval.id: row["version"],
    }


def test_hostile_words_stay_words(people):
    odd = "<img src=x onerror=alert(1)>"
    teamwork.ask(people["operator"], **{**ASKED, "name": odd, "qualified_name": odd, "mcp_server": odd, "why": odd})

    assert "<img" not in get(people["approver"], "/approvals/ask-flood/")


def test_enter_in_a_field_decides_nothing(people):
    """A browser presses the first button of a form then, unless that one is disabled."""
    approval = teamwork.ask(people["operator"], **ASKED)

    page = client_of(people["approver"]).get(f"/approvals/{approval.id}/").content.decode()

    forms = [form for form in re.findall(r"<form.*?</form>", page, re.DOTALL) if 'value="approve"' in form]
    assert len(forms) == 2  # of the request, and of those that are selected
    for form in forms:
        assert " disabled" in re.findall(r"<button[^>]*>", form)[0]
