import pytest

from conversations import search
from tests.searching import asked, catch_up, say

pytestmark = pytest.mark.django_db


def test_words_phrases_and_beginnings_are_found_newest_first():
    say("desk", "The refund was filed for the wrong person", "No refund today", "The person was wrong")
    catch_up()

    assert asked("refund") == [("desk", 2), ("desk", 1)]
    assert asked("wrong person") == [("desk", 3), ("desk", 1)]
    assert asked('"wrong person"') == [("desk", 1)]
    assert asked("ref*") == [("desk", 2), ("desk", 1)]
    assert asked("REFUND TODAY") == [("desk", 2)]
    assert asked("refu") == []
