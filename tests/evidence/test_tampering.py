"""Every kind of edit by SQL or by file, with database and data directory in the attacker's hand, is found and named
against the checkpoint that a witness has."""

import random

import pytest

from conversations.evidence import signing_key
from conversations.evidence.verify_record import RecordCheck, Settings
from tests.evidence.record_edits import (
    EDITS,
    a_chain_made_anew,
    a_conversation_deleted,
    all_signed_anew_by_other_keys,
    all_signed_anew_by_the_same_keys,
    the_audit_tail_cut,
    the_keys_exchanged,
    the_tail_cut,
    the_whole_tree_deleted,
    the_witnesses_file_emptied,
)
from tests.evidence.signed_place import build, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def place(tmp_path):
    return build(tmp_path)


@pytest.mark.slow
def test_an_honest_record_has_no_faults(place):
    assert place.faults() == []
    say("alpha", "later"), say("delta", "new")
    assert place.faults() == []
    place.sign()
    assert place.faults() == []


def test_what_is_signed_while_it_is_checked_is_no_fault(place):
    check = RecordCheck(Settings(place.folder, place.signer.path, [place.witness]))
    say("alpha", "later"), say("delta", "new")
    place.sign()

    assert [part().why for part in (check.audit, check.events, check.tree, check.state)] == [""] * 4


def test_the_tree_alone_tells_that_a_tail_was_cut(place):
    the_tail_cut(place)

    events = RecordCheck(Settings(place.folder, place.signer.path, [place.witness])).events()

    assert "missing: the signed tree has" in events.why


def test_keys_that_have_signed_nothing_yet_are_no_fault(tmp_path):
    say("alpha", "first")
    signing_key.make(tmp_path / "k.json", "example.com/new")

    assert RecordCheck(Settings(tmp_path, tmp_path / "k.json")).tree().ok


# Each is found by a comparison that finds no other edit of the quick tier, which has every third of the rest.
ALONE = {
    a_chain_made_anew, the_tail_cut, a_conversation_deleted, the_audit_tail_cut, the_whole_tree_deleted,
    all_signed_anew_by_other_keys, all_signed_anew_by_the_same_keys, the_keys_exchanged, the_witnesses_file_emptied,
}  # fmt: skip


def marks_of(edit, place, n):
    return [] if not n and (edit in ALONE or place % 3 == 0) else [pytest.mark.thorough]


CASES = [
    pytest.param(edit, n, id=f"{edit.__name__}-{n}", marks=marks_of(edit, place, n))
    for n in range(6)
    for place, edit in enumerate(EDITS)
]


@pytest.mark.parametrize(("edit", "n"), CASES)
def test_an_edit_is_found_and_named(place, edit, n):
    place.dice = random.Random(f"{n} {edit.__name__}")

    words = edit(place)

    faults = place.faults()
    assert any(words in fault for fault in faults), (words, faults)
