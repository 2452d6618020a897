"""Thumbs and notes on events: said once, by people who may, about events that are there; and what stands of them."""

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.access.accounts import tokens
from conversations.conversation import fork as forks
from conversations.conversation.annotate import MAX_TEXT, annotate
from conversations.core import principals
from conversations.core.errors import IdReused, Invalid, NotFound
from conversations.core.ids import new_id
from conversations.events import log
from conversations.events.log import annotation_reads
from conversations.events.log.rebuild import rebuild
from conversations.models import Annotation, Conversation, Event, Token
from conversations.search import searchable_text
from tests.events.test_projections import rows
from tests.support.cast import audit_summary, last_entry
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
MESSAGE = {"type": "message", "sender": "agent:Dialogue", "recipient": "user:otto", "content": "The water is off."}


@pytest.fixture(autouse=True)
def flood() -> Conversation:
    """A conversation of one message and one token."""
    token = {"event": "token", "text": "Elm", "agent": "Dialogue"}
    log.append([unchecked("flood", payload, principals.SYSTEM) for payload in (MESSAGE, token)])
    return Conversation.objects.get(key="flood")


def say(by, thumb=None, text="", about=1, client_id=None):
    return annotate(by, "flood", about, thumb=thumb, text=text, client_id=client_id or new_id())


def standing(conversation, about=1, upto=1 << 62):
    notes = annotation_reads.of_events(conversation.pk, [about], upto).get(about, [])
    return [(note.author, note.thumb, note.text) for note in notes]


def test_a_thumb_and_a_note_are_an_event_and_audited(flood, otto):
    stored = say(otto, "up", " Well put. ")

    body = json.loads(Event.objects.get(conversation=flood, seq=stored.seq).body)
    wanted = {"about": 1, "thumb": "up", "text": "Well put.", "by": "user:otto", "speaker": "agent:Dialogue"}
    assert body.items() >= wanted.items()
    assert standing(flood) == [("user:otto", "up", "Well put.")]
    assert audit_summary(last_entry()) == ("user:otto", "annotate", "conversation:flood", "done")


@pytest.mark.parametrize("role", ["operator", "approver", "auditor", "admin"])
def test_whoever_does_more_than_look_may(people, flood, role):
    say(people[role], "down")

    assert standing(flood) == [(f"user:{people[role].username}", "down", "")]


def test_the_last_thumb_of_a_person_counts_and_notes_add_up(people, flood, otto):
    say(otto, "up", "First.")
    say(otto, "down")
    say(people["approver"], "up")
    say(otto, text="Second.")

    assert standing(flood) == [
        ("user:otto", "", "First."),
        ("user:otto", "down", ""),
        ("user:april", "up", ""),
        ("user:otto", "", "Second."),
    ]


def test_a_withdrawn_thumb_is_gone_and_its_note_stays(flood, otto):
    say(otto, "up", "Well put.")

    say(otto, "")

    assert standing(flood) == [("user:otto", "", "Well put.")]
    assert annotation_reads.thumb_of(flood.pk, 1, "user:otto") == ""


def test_the_past_shows_what_was_said_by_then(flood, otto):
    first = say(otto, "up")
    say(otto, "down", "No.")

    assert standing(flood, upto=first.seq) == [("user:otto", "up", "")]


def test_the_same_client_id_again_is_the_same_annotation(flood, otto):
    first = say(otto, "up", client_id="c1")
    again = say(otto, "up", client_id="c1")

    assert (again.seq, again.is_new) == (first.seq, False)
    with pytest.raises(IdReused):
        say(otto, "down", client_id="c1")


def test_withdrawing_again_by_the_same_client_id_is_the_same(otto):
    say(otto, "up")
    first = say(otto, "", client_id="c2")

    assert say(otto, "", client_id="c2").seq == first.seq


@pytest.mark.parametrize(
    ("field", "how"),
    [
        ("text", {}),
        ("text", {"text": "  \n "}),
        ("text", {"text": "x" * (MAX_TEXT + 1)}),
        ("thumb", {"thumb": "sideways"}),
        ("thumb", {"thumb": ""}),
        ("about", {"thumb": "up", "about": 99}),
        ("about", {"thumb": "up", "about": 0}),
        ("about", {"thumb": "up", "about": 2}),
        ("client_id", {"thumb": "up", "client_id": "x" * 101}),
    ],
)
def test_what_says_nothing_or_is_about_nothing_is_refused(flood, otto, field, how):
    with pytest.raises(Invalid) as refused:
        say(otto, **how)

    assert refused.value.field == field
    assert Conversation.objects.get(key="flood").head_seq == 2


def test_an_annotation_of_an_annotation_is_refused(otto):
    first = say(otto, "up")

    with pytest.raises(Invalid, match="must not be an annotation"):
        say(otto, "up", about=first.seq)


def test_an_unknown_conversation_is_not_found(otto):
    with pytest.raises(NotFound):
        annotate(otto, "nowhere", 1, thumb="up", client_id="c")


def test_a_token_says_it_in_its_own_name(flood, people):
    tokens.make_token(people["admin"], "robot", "operator")

    say(Token.objects.get(name="robot"), "up")

    assert standing(flood) == [("token:robot", "up", "")]


@pytest.mark.parametrize("who", [principals.import_principal("file"), principals.token_principal("robot")], ids=str)
def test_a_claim_from_outside_stands_under_nothing(flood, who):
    log.append([unchecked("flood", {"event": "event.annotated", "about": 1, "thumb": "up", "by": "user:otto"}, who)])

    assert standing(flood) == []
    assert not Annotation.objects.exists()


@pytest.mark.each_form  # numbers that a column cannot hold
@pytest.mark.parametrize("about", [0, -1, 3, 1 << 70, "1", None])
def test_one_that_names_no_earlier_event_is_about_nothing(flood, about):
    claim = {"event": "event.annotated", "about": about, "thumb": "up"}

    log.append([unchecked("flood", claim, principals.user_principal("otto"))])

    assert not Annotation.objects.exists()


def test_rebuild_changes_nothing_and_mends_what_is_wrong(flood, otto):
    say(otto, "up", "One.")
    say(otto, "down")
    before = rows()
    list(rebuild())
    assert rows() == before

    Annotation.objects.filter(thumb="up").delete()
    Annotation.objects.update(thumb="up")
    Annotation.objects.create(conversation=flood, seq=77, about=1, author="user:x", thumb="up", speaker="", at=0)
    list(rebuild())

    assert rows() == before


def test_a_fork_keeps_what_was_said_about_its_copies(flood, otto):
    say(otto, "up", "Well put.")
    head = Conversation.objects.get(key="flood").head_seq

    key = forks.fork(otto, "flood", head).conversation
    say(otto, "down")

    again = Conversation.objects.get(key=key)
    assert standing(again) == [("user:otto", "up", "Well put.")]
    before = rows()
    list(rebuild())
    assert rows() == before


def test_a_page_asks_once_where_nobody_said_anything_and_twice_else(flood, otto):
    def queries():
        with CaptureQueriesContext(connection) as queries:
            annotation_reads.of_events(flood.pk, range(1, 200))
        return len(queries)

    assert queries() == 1
    for n in range(5):
        say(otto, text=f"Note {n}")

    assert queries() == 2


def test_notes_of_a_read_are_bounded_by_bytes(flood, monkeypatch, otto):
    monkeypatch.setattr(annotation_reads, "NOTE_BYTES", 3_000)
    for n in range(5):
        say(otto, text=f"{n} " + "x" * 1_500)

    notes = annotation_reads.before(flood.pk, None, None, 10)

    assert [bool(note.text) for note in notes] == [True, True, False, False, False]


def test_a_note_is_found_by_its_words_and_by_whom_it_is_about():
    body = {"event": "event.annotated", "about": 12, "thumb": "up", "text": "Well put.", "speaker": "agent:X"}

    assert set(searchable_text.parts_of("event.annotated", body)) == {("about", "agent:X"), ("", "Well put.")}
