"""Quarantine: re-drive and discard work, refuse strangers, tell losers who won, leave an event and an audit entry."""

import json
import threading

import pytest
from django.db import connection

from conversations.access.audit import chain
from conversations.core import principals
from conversations.core.errors import Conflict, Invalid, NotFound, SwitchboardError
from conversations.core.principals import SYSTEM
from conversations.events import commit_listeners, log
from conversations.models import AuditEntry, Conversation, Event, Post, Quarantine
from conversations.transport import quarantine
from tests.support import quarantined
from tests.support.cast import cast, last_entry
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db

SAID = {"type": "message", "sender": "agent:Triage", "recipient": "agent:Dialogue", "content": "Somebody is here."}
ACTIONS = {
    "redrive": lambda by, number: quarantine.redrive(by, number, conversation="desk"),
    "discard": lambda by, number: quarantine.discard(by, number, "noise"),
    "alike": lambda by, number: quarantine.discard_alike(by, number, "noise"),
}


@pytest.fixture
def admin(team):
    return team["admin"]


def outcome(message):
    return Quarantine.objects.get(pk=message.pk).outcome


def test_a_message_is_read_again_into_the_conversation_given(admin, django_capture_on_commit_callbacks):
    message = quarantined.quarantine(SAID)
    rung = []
    stop = commit_listeners.on_committed(rung.extend)

    with django_capture_on_commit_callbacks(execute=True):
        stored = quarantine.redrive(admin, message.pk, conversation=" desk ")
    stop()

    event = Event.objects.get(conversation__key="desk")
    assert (event.seq, event.kind, event.principal, json.loads(event.body)) == (1, "message", "bus:redis", SAID)
    assert [(event_.conversation, event_.seq) for event_ in rung] == [("desk", 1)]
    assert (stored.seq, outcome(message)) == (1, "redriven")
    entry = last_entry()
    assert (entry.principal, entry.verb, entry.target, entry.outcome) == (
        "user:ada",
        "redrive",
        f"quarantine:{message.pk}",
        "done",
    )
    assert json.loads(entry.correlation) == {
        "source": "chat:desk",
        "entry": message.entry,
        "conversation": "desk",
        "seq": 1,
    }
    assert chain.verify().ok


def test_a_message_that_names_its_conversation_goes_there(admin):
    message = quarantined.quarantine(SAID | {"conversation_id": "own"}, reason="the database was full")

    assert quarantine.redrive(admin, message.pk).conversation == "own"


def test_a_message_of_a_stream_goes_to_the_streams_conversation(admin):
    message = quarantined.quarantine({"event": "log", "message": "x"}, source="stream:desk")

    assert quarantine.redrive(admin, message.pk).conversation == "desk"


def test_what_was_redriven_is_not_relayed_to_redis(admin):
    for source, conversation in (("chat:Dialogue", "desk"), ("signal:tick", "")):
        message = quarantined.quarantine(SAID, source=source)
        quarantine.redrive(admin, message.pk, conversation=conversation)

    assert Post.objects.filter(sent_at=None).count() == 0
    assert Post.objects.filter(topic="signal:tick", conversation=None).count() == 1


def test_claims_of_our_kinds_change_nothing(admin):
    message = quarantined.quarantine({"event": "conversation.paused", "conversation_id": "desk"}, source="stream:desk")

    quarantine.redrive(admin, message.pk)

    assert Conversation.objects.get(key="desk").state == "open"


@pytest.mark.parametrize(("found_at", "starts_no_run"), [(0, False), (1 << 62, True)])
def test_what_is_older_than_first_contact_stays_history(found_at, starts_no_run):
    row = quarantined.stream("chat:desk")
    type(row).objects.update(found_at=found_at)

    assert quarantine.read_again(quarantined.quarantine(SAID), "desk").starts_no_run is starts_no_run


def test_an_empty_message_is_no_loss():
    empty = quarantined.quarantine(b"")
    loss = quarantined.quarantine(b"", entry=">1750000000000-0")

    assert (empty.is_loss, loss.is_loss) == (False, True)
    with pytest.raises(Invalid, match="JSON"):
        quarantine.read_again(empty, "desk")
    with pytest.raises(Invalid, match="lost before it could be read"):
        quarantine.read_again(loss, "desk")


def test_entries_lost_before_a_known_one_are_a_loss_too():
    loss = quarantined.quarantine(b"", entry="<1750000000000-0")

    assert loss.is_loss
    with pytest.raises(Invalid, match="lost before it could be read"):
        quarantine.read_again(loss, "desk")


STILL_BAD = {
    "no conversation": (SAID, "", "conversation"),
    "a blank conversation": (SAID, "   ", "conversation"),
    "a conversation too long": (SAID, "x" * 201, "200 characters"),
    "a conversation that no column holds": (SAID, "a\0b", "200 characters"),
    "one of its own": (SAID | {"conversation_id": "own"}, "other", "names its own conversation, own"),
    "no JSON": (b'{"type": ', "desk", "JSON"),
    "no object": (b"[1, 2]", "desk", "object"),
    "not a number": (b'{"type": "message", "x": NaN}', "desk", "NaN|JSON|malformed"),
    "no UTF-8": (b'{"type": "message", "content": "\xff\xfe"}', "desk", "UTF-8"),
    "too deep": (b'{"a":' * 200 + b"1" + b"}" * 200, "desk", "levels deep"),
    "cut off": (b"x" * 70_000, "desk", "first 65,536 of 70,000 bytes"),
}


@pytest.mark.parametrize("name", STILL_BAD)
def test_what_is_still_bad_says_why_and_changes_nothing(admin, name):
    raw, conversation, why = STILL_BAD[name]
    message = quarantined.quarantine(raw)

    with pytest.raises(SwitchboardError, match=why):
        quarantine.redrive(admin, message.pk, conversation=conversation)

    assert (outcome(message), Event.objects.count(), AuditEntry.objects.count()) == (None, 0, 0)
    assert not Conversation.objects.exists()


def test_only_what_can_be_read_and_names_none_asks_for_a_conversation():
    fields = {
        name: quarantine.lacks_conversation(quarantined.quarantine(raw)) for name, (raw, _, _) in STILL_BAD.items()
    }

    no_home = {"no conversation", "a blank conversation", "a conversation too long"}
    assert {name for name, lacks in fields.items() if lacks} == no_home | {"a conversation that no column holds"}


def test_a_conversation_whose_name_is_too_long_may_be_named_anew(admin):
    message = quarantined.quarantine(SAID | {"conversation_id": "x" * 300})

    assert quarantine.redrive(admin, message.pk, conversation="desk").conversation == "desk"


def test_what_came_again_meanwhile_is_stored_once(admin):
    payload = SAID | {"id": "m-1", "conversation_id": "desk"}
    message = quarantined.quarantine(payload)
    log.append([unchecked("desk", payload, principals.REDIS)])

    stored = quarantine.redrive(admin, message.pk)

    assert (stored.is_new, stored.seq, Event.objects.count()) == (False, 1, 1)
    assert outcome(message) == "redriven"


def test_an_id_of_another_message_is_refused(admin):
    log.append([log.from_internal("desk", SAID | {"id": "m-1"}, SYSTEM)])
    message = quarantined.quarantine(SAID | {"id": "m-1", "conversation_id": "desk", "content": "Another."})

    with pytest.raises(Conflict, match="a different message with this id"):
        quarantine.redrive(admin, message.pk)

    assert (outcome(message), last_entry().outcome) == (None, "refused")


@pytest.mark.parametrize("first", ACTIONS)
@pytest.mark.parametrize("second", ["redrive", "discard"])
def test_the_second_is_told_who_was_first(team, admin, first, second):
    message = quarantined.quarantine(SAID)
    ACTIONS[first](principals.user_principal("ada"), message.pk)
    events = Event.objects.count()

    with pytest.raises(Conflict, match="user:ada was faster"):
        ACTIONS[second](admin, message.pk)

    assert Event.objects.count() == events
    assert (last_entry().verb, last_entry().outcome) == (second, "refused")


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_wins(transactional_db):
    admin = cast()["admin"]
    message = quarantined.quarantine(SAID)
    start, results = threading.Barrier(6), []

    def race(act):
        start.wait()
        try:
            ACTIONS[act](admin, message.pk)
            results.append("won")
        except Conflict:
            results.append("lost")
        finally:
            connection.close()

    racers = [threading.Thread(target=race, args=[act]) for act in ("redrive", "discard") * 3]
    [racer.start() for racer in racers]
    [racer.join() for racer in racers]

    assert sorted(results) == ["lost"] * 5 + ["won"]
    assert Event.objects.count() == (outcome(message) == "redriven")
    assert AuditEntry.objects.filter(outcome="done").count() == 1


def test_a_discarded_message_can_still_be_read(admin):
    message = quarantined.quarantine(SAID)

    quarantine.discard(admin, message.pk, "  a broken test agent ")

    stored = Quarantine.objects.get(pk=message.pk)
    assert (stored.outcome, json.loads(bytes(stored.raw)), Event.objects.count()) == ("discarded", SAID, 0)
    assert (last_entry().verb, last_entry().reason) == ("discard", "a broken test agent")


@pytest.mark.parametrize("reason", ["", "  \n", "x" * 2001])
@pytest.mark.parametrize("act", [quarantine.discard, quarantine.discard_alike])
def test_a_reason_is_needed(admin, act, reason):
    message = quarantined.quarantine(SAID)

    with pytest.raises(Invalid) as caught:
        act(admin, message.pk, reason)

    assert (caught.value.field, outcome(message)) == ("reason", None)


def test_those_alike_go_together(admin):
    alike = [quarantined.quarantine(SAID) for _ in range(3)]
    others = [quarantined.quarantine(SAID, source="chat:other"), quarantined.quarantine(SAID, reason="no JSON")]
    quarantine.discard(admin, alike[1].pk, "by itself")

    assert quarantine.discard_alike(admin, alike[0].pk, "noise") == 2

    assert [outcome(message_) for message_ in (*alike, *others)] == ["discarded"] * 3 + [None] * 2
    assert quarantine.settlement(alike[2].pk).reason == "noise"
    assert quarantine.settlement(alike[1].pk).reason == "by itself"


@pytest.mark.slow
def test_at_most_200_go_together(admin):
    first, *_ = [quarantined.quarantine(SAID, entry=f"{n}-0") for n in range(201)]

    assert quarantine.discard_alike(admin, first.pk, "noise") == 200
    assert quarantine.discard_alike(admin, first.pk, "noise") == 1
    with pytest.raises(Conflict, match="someone else was faster"):
        quarantine.discard_alike(admin, first.pk, "noise")
    assert chain.verify().ok


@pytest.mark.parametrize("number", [7, 0, 1 << 70])
@pytest.mark.parametrize("act", ACTIONS)
def test_what_is_not_there_is_not_found(admin, act, number):
    with pytest.raises(NotFound):
        ACTIONS[act](admin, number)
