"""`verify` finds a change of any column, in both formats of the chain; a redaction counts where an event names it."""

import json

import pytest
from django.db import connection

from conversations.core.principals import SYSTEM, token_principal
from conversations.events import log, verify_chains
from conversations.events.log import hash_chain
from conversations.models import Conversation, Event
from tests.support.redacted import redact, to_format_1
from tests.support.unchecked import unchecked
from tests.support.verified import verify_events

pytestmark = pytest.mark.django_db
CHANGES = {
    "a body changed with its salt taken away": {"body": "{}", "salt": None},
    "a body that was erased by nobody": {"body": "{}", "salt": None, "erased_by": "user:eve"},
    "a run": {"run": "other"},
    "a run taken away": {"run": None},
    "an empty run": {"run": ""},
    "a turn": {"turn": 7},
    "an empty id in place of none": {"event_id": ""},
    "marked as erased": {"erased_by": "user:eve"},
    "marked as erased by nobody": {"erased_by": ""},
    "a longer salt": {"salt": b"x" * 17},
}


@pytest.fixture(autouse=True)
def record():
    for principal in (SYSTEM, token_principal("robot")):
        log.append([unchecked("c", {"event": "log", "run_id": "r", "turn": 1}, principal)])


def first_bad():
    verdict = verify_events()
    return verdict.first_bad if not verdict.ok else ""


def test_an_unchanged_record_is_whole():
    assert verify_events() == verify_chains.ChainReport(2, ok=True)
    assert list(Event.objects.order_by("seq").values_list("run", "turn")) == [("r", 1), (None, None)]


@pytest.mark.parametrize("upto", [0, 1, 2])
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_found(what, upto):
    to_format_1("c", upto)
    Event.objects.filter(seq=1).update(**CHANGES[what])

    assert first_bad() == "conversation 'c', event 1"


@pytest.mark.parametrize("upto", [0, 1, 2])
def test_events_of_format_1_stay_valid_and_go_on_in_format_2(upto):
    to_format_1("c", upto)
    log.append([log.from_internal("c", {"event": "operator.note", "text": "later"}, SYSTEM)])

    assert verify_events() == verify_chains.ChainReport(3, ok=True)


def test_format_1_does_not_come_after_format_2():
    to_format_1("c", 0)
    second = Event.objects.get(seq=2)
    first_hash = Event.objects.get(seq=1).hash
    columns = (second.kind, second.at, second.principal, second.event_id, second.digest)
    forged = hash_chain.link_v1(first_hash, "c", 2, *columns)
    Event.objects.filter(seq=2).update(hash=forged)
    Conversation.objects.update(head_hash=forged)

    assert first_bad() == "conversation 'c', event 2"


@pytest.mark.sqlite("it alone keeps another type in a column")
@pytest.mark.parametrize("change", ["body=X'FF'", "turn=''", "principal=CAST(principal AS BLOB)"])
def test_a_value_of_another_type_is_found(change):
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE conversations_event SET {change} WHERE seq=1")

    assert first_bad() == "conversation 'c', event 1"


def test_a_run_that_a_claim_was_given_is_found():
    Event.objects.filter(seq=2).update(run="r")

    assert first_bad() == "conversation 'c', event 2"


def test_a_hidden_conversation_is_found():
    Conversation.objects.update(is_staged=True)

    assert first_bad() == "conversation 'c'"


@pytest.mark.parametrize("upto", [0, 2])
def test_a_redaction_that_an_event_names_is_whole(upto):
    to_format_1("c", upto)
    redact("c", 1, body='{"run_id":"r","turn":1}')  # a tombstone keeps what tells the columns

    assert verify_events() == verify_chains.ChainReport(3, ok=True)


@pytest.mark.parametrize("change", [{"body": '{"a":1}'}, {"erased_by": "user:eve"}, {"erased_by": None}])
def test_a_changed_tombstone_is_found(change):
    redact("c", 1)
    Event.objects.filter(seq=1).update(**change)

    assert first_bad() == "conversation 'c', event 1"


def test_a_redaction_that_names_other_content_is_found():
    redact("c", 1, named='{"other":true}')

    assert first_bad() == "conversation 'c', event 1"


def test_a_claim_of_a_redaction_counts_nothing():
    redact("c", 1)
    Event.objects.filter(seq=1).update(salt=None)
    body = Event.objects.get(seq=3).body
    log.append([unchecked("d", {}, token_principal("robot"))])
    Event.objects.filter(conversation__key="d").update(body="{}", salt=None)
    log.append([unchecked("d", json.loads(body), token_principal("robot"))])

    assert first_bad() == "conversation 'd', event 1"
