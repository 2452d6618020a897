"""`verify` finds what was changed beside the hashed columns: the salt, the run, the turn, an empty id."""

import json

import pytest
from django.db import connection

from conversations.core.principals import SYSTEM, token_principal
from conversations.events import log, payload, verify_chains
from conversations.models import Event

pytestmark = pytest.mark.django_db
CHANGES = {
    "a body changed with its salt taken away": {"body": "{}", "salt": None},
    "a run": {"run": "other"},
    "a run taken away": {"run": None},
    "a turn": {"turn": 7},
    "an empty id in place of none": {"event_id": ""},
}


@pytest.fixture(autouse=True)
def record():
    for principal in (SYSTEM, token_principal("robot")):
        body = json.dumps({"event": "log", "run_id": "r", "turn": 1, "conversation_id": "c"})
        log.append([log.from_bus("stream:c", None, body, payload.parse(body.encode()), principal)])


def test_an_unchanged_record_is_whole():
    assert verify_chains.verify_events() == verify_chains.ChainReport(2, ok=True)
    assert list(Event.objects.order_by("seq").values_list("run", "turn")) == [("r", 1), (None, None)]


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found(what):
    Event.objects.filter(seq=1).update(**CHANGES[what])

    verdict = verify_chains.verify_events()

    assert (verdict.ok, verdict.first_bad) == (False, "conversation 'c', event 1")


@pytest.mark.sqlite("it alone keeps another type in a column")
def test_a_blob_in_place_of_a_body_is_found():
    with connection.cursor() as cursor:
        cursor.execute("UPDATE conversations_event SET body=X'FF' WHERE seq=1")

    assert verify_chains.verify_events().first_bad == "conversation 'c', event 1"


def test_a_run_that_a_claim_was_given_is_found():
    Event.objects.filter(seq=2).update(run="r")

    assert verify_chains.verify_events().first_bad == "conversation 'c', event 2"
