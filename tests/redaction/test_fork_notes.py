"""What people note in a fork about a copied event goes with the event that was redacted in the original."""

import pytest

from conversations.conversation.annotate import annotate
from conversations.conversation.fork import fork
from conversations.redaction import selection
from conversations.redaction.redact import redact
from tests.redaction.test_redact import everywhere
from tests.redaction.test_scope import PHONE, called, stored

pytestmark = pytest.mark.django_db(transaction=True)


def note(by, key, about, text):
    return annotate(by, key, about, client_id=f"{key}-{about}-{text[:10]}", text=text).seq


def test_a_note_in_a_fork_of_a_fork_goes_with_the_original(team):
    admin = team["admin"]
    for text in ("axolotl", "numbat"):
        stored("noted", {"event": "message", "sender": "A", "recipient": "all", "content": text})
    first = fork(admin, "noted", 2).conversation
    last = note(admin, first, 1, "this axolotl is private")
    second = fork(admin, first, last).conversation
    note(admin, second, 1, "still that axolotl")
    unrelated = note(admin, second, 2, "about the numbat")

    redact(admin, "noted", [1], "asked for")

    assert everywhere("axolotl") == []
    assert selection.parts_of(second, [unrelated])[0].seqs == [unrelated]


def test_of_a_field_only_the_notes_go_that_say_what_stood_there(team):
    admin = team["admin"]
    call = called("noted-call")
    copy = fork(admin, "noted-call", 2).conversation
    revealing = note(admin, copy, 1, f"why {PHONE}?")
    plain = note(admin, copy, 1, "well dialled")

    parts = {part.conversation.key: part.seqs for part in selection.parts_of_call(call.id, "args.phone")}

    assert revealing in parts[copy]
    assert plain not in parts[copy]
