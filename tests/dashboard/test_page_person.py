"""A page rendered for one person does nothing in the name of another who signed in in the same browser since."""

import re

import pytest
from django.test import Client

from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Event
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db
MESSAGE = {"recipient": "chat:c", "content": "hello", "client_id": "m1"}


def messages():
    return Event.objects.filter(kind="message").count()


@pytest.fixture(autouse=True)
def conversation():
    log.append([log.from_internal("c", {"event": "log", "message": "hello"}, SYSTEM)])


def send(client, rendered_for=None):
    headers = {} if rendered_for is None else {"X-Switchboard-Person": rendered_for}
    return client.post("/api/v1/conversations/c/messages", MESSAGE, "application/json", headers=headers)


def test_a_script_acts_for_the_person_whose_page_it_is(people):
    client = client_of(people["operator"])

    assert [send(client, "otto").status_code, send(client).status_code] == [201, 201]


def test_a_script_of_another_persons_page_is_refused(people):
    answer = send(client_of(people["operator"]), "ada")

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], messages()) == (409, "other_person", 0)
    assert error["message"] == (
        "This page was opened by ada, but otto has signed in in this browser since, so nothing was done. "
        "Reload the page."
    )


def test_a_part_of_another_persons_page_is_not_rendered(people):
    headers = {"X-Switchboard-Person": "ada", "X-Requested-With": "fetch"}

    assert client_of(people["operator"]).get("/approvals/", headers=headers).status_code == 409


def test_names_are_compared_as_they_are_written(people):
    client = client_of(person("zoë", "operator"))

    assert [send(client, "zo%C3%AB").status_code, send(client, "zoe").status_code] == [201, 409]


def test_a_form_from_before_another_sign_in_says_so_and_does_nothing(people):
    client = Client(headers={"Host": "127.0.0.1:8000"}, enforce_csrf_checks=True)
    client.force_login(people["admin"])
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', client.get("/people/").text)[1]
    client.get("/people/")
    client.force_login(people["operator"])
    client.cookies["switchboard_csrf"] = "x" * 32  # a sign-in makes a new one

    answer = client.post("/people/", {"csrfmiddlewaretoken": token, "name": "eve"})

    assert answer.status_code == 403
    assert "This form was opened before otto signed in in this browser, so nothing was done." in answer.text
