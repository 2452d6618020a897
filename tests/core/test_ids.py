"""Ids made of a text: stored ones are found by them again, so they are the same in every release."""

import uuid

from conversations.core.ids import copy_id, derived_id


def test_the_id_of_a_text_never_changes_and_is_a_uuid():
    id_ = derived_id("user:ada\0c\0straße")

    assert id_ == "663169e6-5491-89f1-8ab2-b2058c9ad5bc"
    assert (str(uuid.UUID(id_)), uuid.UUID(id_).version, uuid.UUID(id_).variant) == (id_, 8, uuid.RFC_4122)


def test_the_first_topic_of_an_envelope_has_its_id_and_the_others_have_one_made_of_it():
    assert [copy_id("e", number) for number in range(2)] == ["e", derived_id("e\x001")]
