"""Arguments in the forms that let a call run: what was not edited runs as it was sent, and no edit is dropped."""

import json

import pytest

from conversations.models import Event, ToolSchema
from tests.dashboard.pages.test_approvals_page import ASKED, PARAMETERS, people, words
from tests.support import teamwork
from tests.support.cast import client_of
from tests.support.posted_form import posted_form
from tests.support.replay_desk import Desk, working

__all__ = ["people"]

pytestmark = pytest.mark.django_db(transaction=True)
ARGS = ASKED["args"]
LINES = ["Mill\r\nRoad", "Mill\rRoad", "\nMill", "Mill\0Road", "Mill \ud800"]


def request_with(people, **args):
    """Have an agent ask with other arguments; answer the request and what the untouched form posts."""
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

    assert answer.status_code == 302, words(answer.content.decode())
    assert decided_arguments() == ("approve", None)


@pytest.mark.parametrize("street", LINES[:4])
def test_an_edit_of_one_argument_leaves_the_others_as_sent(people, street):
    address, form = request_with(people, street=street)

    answer = client_of(people["approver"]).post(address, form | {"arg.house": "8", "decide": "fields"})

    assert answer.status_code == 302, words(answer.content.decode())
    assert decided_arguments() == ("edit", ARGS | {"street": street, "house": 8})


@pytest.mark.parametrize("more", [{}, {"ticket": 7, "note": None}])
def test_an_edit_adds_nothing_and_drops_nothing(people, more):
    properties = PARAMETERS["properties"] | {"cc": {"type": "string"}}
    loose = {"type": "object", "properties": properties}
    ToolSchema.objects.update(body=json.dumps({"name": "city.file", "params_json_schema": loose}))
    address, form = request_with(people, **more)

    answer = client_of(people["approver"]).post(address, form | {"arg.street": "Elm", "decide": "fields"})

    assert answer.status_code == 302, words(answer.content.decode())
    assert decided_arguments() == ("edit", ARGS | more | {"street": "Elm"})


def test_an_argument_that_the_schema_does_not_allow_is_not_dropped(people):
    address, form = request_with(people, ticket=7)

    answer = client_of(people["approver"]).post(address, form | {"arg.street": "Elm", "decide": "fields"})

    assert answer.status_code == 422
    assert "Additional properties are not allowed (&#39;ticket&#39;" in answer.content.decode()


@pytest.mark.parametrize("street", ["Elm\r\nRoad", "Elm\rRoad", "\nElm"])
def test_an_untouched_replay_form_repeats_the_recorded_arguments(people, tmp_path, monkeypatch, street):
    monkeypatch.setattr("tests.support.replay_desk.ARGS", {"street": street})
    desk, otto = Desk(tmp_path), client_of(people["operator"])
    old = desk.recorded("put")["put"]
    with working(desk.team()):
        page = otto.get(f"/calls/{old.id}/").content.decode()
        form = posted_form(page, f"/calls/{old.id}/replays/#replay")
        answer = otto.post(f"/calls/{old.id}/replays/", form | {"do": "run"})

    assert answer.status_code == 302, words(answer.content.decode())
    requested = json.loads(Event.objects.get(kind="replay.requested").body)
    assert (requested["args"], requested["edited"]) == ({"street": street}, False)
