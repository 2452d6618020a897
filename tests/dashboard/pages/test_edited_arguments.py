"""Arguments in the forms that let a call run: what was not edited runs as it was sent, and no edit is dropped."""

import json

import pytest

from conversations.models import Approval, AutoApprovalRule, Event, Run, ToolSchema
from tests.dashboard.pages.test_approvals_page import ASKED, PARAMETERS, people
from tests.support import teamwork
from tests.support.cast import client_of
from tests.support.posted_form import posted_form
from tests.support.replay_desk import Desk, working
from tests.support.visits import words_of

__all__ = ["people"]

pytestmark = pytest.mark.django_db(transaction=True)
ARGS = ASKED["args"]
LINES = ["Mill\r\nRoad", "Mill\rRoad", "\nMill", "Mill\0Road", "Mill \ud800"]


def request_with(people, **args):
    """Have an agent ask with other arguments; return the request and what the untouched form posts."""
    approval = teamwork.ask(people["operator"], **(ASKED | {"args": ARGS | args}))
    address = f"/approvals/{approval.id}/"
    page = client_of(people["approver"]).get(address).content.decode()
    return address, posted_form(page, address)


def decided_arguments():
    body = json.loads(Event.objects.get(kind="approval.decided").body)
    return body["decision"], body.get("args")


@pytest.mark.parametrize("street", LINES)
def test_a_call_is_approved_as_sent_whatever_its_texts_contain(people, street):
    address, form = request_with(people, street=street)

    answer = client_of(people["approver"]).post(address, form | {"decide": "approve"})

    assert answer.status_code == 302, words_of(answer.content.decode())
    assert decided_arguments() == ("approve", None)


@pytest.mark.parametrize("street", LINES[:4])
def test_an_edit_of_one_argument_leaves_the_others_as_sent(people, street):
    address, form = request_with(people, street=street)

    answer = client_of(people["approver"]).post(address, form | {"arg.house": "8", "decide": "fields"})

    assert answer.status_code == 302, words_of(answer.content.decode())
    assert decided_arguments() == ("edit", ARGS | {"street": street, "house": 8})


@pytest.mark.parametrize("more", [{}, {"ticket": 7, "note": None}])
def test_an_edit_adds_nothing_and_drops_nothing(people, more):
    properties = PARAMETERS["properties"] | {"cc": {"type": "string"}}
    loose = {"type": "object", "properties": properties}
    ToolSchema.objects.update(body=json.dumps({"name": "city.file", "params_json_schema": loose}))
    address, form = request_with(people, **more)

    answer = client_of(people["approver"]).post(address, form | {"arg.street": "Elm", "decide": "fields"})

    assert answer.status_code == 302, words_of(answer.content.decode())
    assert decided_arguments() == ("edit", ARGS | more | {"street": "Elm"})


@pytest.mark.parametrize("name", ['say "hi"', " padded ", "50%22", "two\nlines", "straße"])
def test_an_argument_of_any_name_can_be_edited(people, name):
    properties = PARAMETERS["properties"] | {name: {"type": "string"}}
    loose = {"type": "object", "properties": properties}
    ToolSchema.objects.update(body=json.dumps({"name": "city.file", "params_json_schema": loose}))
    address, form = request_with(people, **{name: "as it was"})
    (control,) = [control for control, value in form.items() if value == "as it was"]

    answer = client_of(people["approver"]).post(address, form | {control: "edited", "decide": "fields"})

    assert answer.status_code == 302, words_of(answer.content.decode())
    assert decided_arguments() == ("edit", ARGS | {name: "edited"})


def test_an_argument_that_the_schema_does_not_allow_is_not_dropped(people):
    address, form = request_with(people, ticket=7)

    answer = client_of(people["approver"]).post(address, form | {"arg.street": "Elm", "decide": "fields"})

    assert answer.status_code == 422
    assert "Additional properties are not allowed (&#39;ticket&#39;" in answer.content.decode()


@pytest.mark.slow
@pytest.mark.parametrize("street", ["Elm\r\nRoad", "Elm\rRoad", "\nElm"])
def test_an_untouched_replay_form_repeats_the_recorded_arguments(people, tmp_path, monkeypatch, street):
    monkeypatch.setattr("tests.support.replay_desk.ARGS", {"street": street})
    desk, otto = Desk(tmp_path), client_of(people["operator"])
    old = desk.recorded("put")["put"]
    with working(desk.team()):
        page = otto.get(f"/calls/{old.id}/").content.decode()
        form = posted_form(page, f"/calls/{old.id}/replays/#replay")
        answer = otto.post(f"/calls/{old.id}/replays/", form | {"do": "run"})

    assert answer.status_code == 302, words_of(answer.content.decode())
    requested = json.loads(Event.objects.get(kind="replay.requested").body)
    assert (requested["args"], requested["edited"]) == ({"street": street}, False)


EDITED_FIELD = {"arg.street": "Elm"}
EDITED_JSON = {"raw": json.dumps(ARGS | {"street": "Elm"})}
ALWAYS = {"decide": "always", "match": "exact"}


@pytest.mark.parametrize(
    ("edits", "pressed", "problem"),
    [
        (EDITED_FIELD, {"decide": "approve"}, "choose Approve with edits"),
        (EDITED_FIELD, {"decide": "raw"}, "choose Approve with edits"),
        (EDITED_FIELD, ALWAYS, "choose Approve with edits"),
        (EDITED_JSON, {"decide": "approve"}, "choose Approve with this JSON"),
        (EDITED_JSON, {"decide": "fields"}, "choose Approve with this JSON"),
        (EDITED_JSON, ALWAYS, "choose Approve with this JSON"),
        (EDITED_FIELD | EDITED_JSON, {"decide": "fields"}, "both in the fields and as JSON"),
        (EDITED_FIELD | EDITED_JSON, {"decide": "raw"}, "both in the fields and as JSON"),
        ({"arg.gone": "x"}, {"decide": "approve"}, "no longer has the fields of this form"),
    ],
)
def test_no_button_that_lets_a_call_run_drops_an_edit(people, edits, pressed, problem):
    address, form = request_with(people)

    answer = client_of(people["approver"]).post(address, form | edits | pressed)

    page = answer.content.decode()
    assert (answer.status_code, Approval.objects.get().status) == (422, "pending")
    assert problem in words_of(page)
    assert posted_form(page, address).items() >= {k: v for k, v in edits.items() if k != "arg.gone"}.items()
    assert "raw" not in edits or "data-json open" in page
    assert not AutoApprovalRule.objects.exists()


@pytest.mark.parametrize("pressed", ["approve", "fields", "raw"])
def test_a_form_without_edits_approves_the_call_as_sent(people, pressed):
    address, form = request_with(people, street="Mill\r\nRoad")

    client_of(people["approver"]).post(address, form | {"decide": pressed})

    assert decided_arguments() == ("approve", None)


def test_without_edits_a_rule_is_made_for_the_call_as_sent(people):
    address, form = request_with(people, street="Mill\r\nRoad")

    client_of(people["approver"]).post(address, form | ALWAYS)

    assert decided_arguments() == ("approve", None)
    assert json.loads(AutoApprovalRule.objects.get().arguments) == ARGS | {"street": "Mill\r\nRoad"}


@pytest.mark.parametrize("pressed", ["reject", "respond"])
def test_what_does_not_run_the_call_ignores_edits(people, pressed):
    address, form = request_with(people)

    client_of(people["approver"]).post(address, form | EDITED_FIELD | {"decide": pressed, "output": "x"})

    assert Approval.objects.get().decision == pressed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edits", "pressed", "problem"),
    [
        ({"raw": '{"street": "Oak"}'}, "run", "choose Run with this JSON"),
        ({"raw": '{"street": "Oak"}'}, "dry", "choose Run with this JSON"),
        ({"arg.street": "Oak"}, "run-raw", "choose Run for real"),
        ({"raw": '{"street": "Oak"}', "arg.street": "Ash"}, "run", "both in the fields and as JSON"),
        ({"raw": ""}, "run", "choose Run with this JSON"),
    ],
)
def test_no_button_of_the_replay_form_drops_an_edit(people, tmp_path, edits, pressed, problem):
    desk, otto = Desk(tmp_path), client_of(people["operator"])
    old = desk.recorded("look")["look"]
    action = f"/calls/{old.id}/replays/"
    with working(desk.team()):
        form = posted_form(otto.get(f"/calls/{old.id}/").content.decode(), f"{action}#replay")
        answer = otto.post(action, form | edits | {"do": pressed})

    page = answer.content.decode()
    assert problem in words_of(page)
    assert posted_form(page, f"{action}#replay").items() >= edits.items()
    assert not Run.objects.filter(kind="replay").exists()
