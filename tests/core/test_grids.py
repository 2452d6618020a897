"""A grid of cases in one test: each case finds the database as it was, and each that fails is named."""

import pytest
from django.db import transaction

from conversations.models import Conversation
from tests.support.grids import for_each

pytestmark = pytest.mark.django_db


def test_every_case_that_fails_is_named_with_what_was_wrong():
    proved = []

    def prove(number, name):
        proved.append(name)
        if number == 3:
            pytest.fail("not this one")
        assert number % 2 == 0

    with pytest.raises(AssertionError, match="3 of 4 cases failed") as caught:
        for_each([(1, "a"), (2, "b"), (3, "c"), (5, "d")], prove)

    assert proved == ["a", "b", "c", "d"]
    assert [line.split(":")[0] for line in str(caught.value).splitlines() if line.startswith("(")] == [
        "(1, 'a')",
        "(3, 'c')",
        "(5, 'd')",
    ]


def test_a_case_leaves_no_row_to_the_next_and_what_was_before_stays():
    Conversation.objects.create(key="before")

    def prove(must_fail):
        with transaction.atomic(durable=True):
            Conversation.objects.create(key="within")
        assert Conversation.objects.count() == 2
        assert not must_fail

    with pytest.raises(AssertionError, match="1 of 3 cases failed"):
        for_each([(False,), (True,), (False,)], prove)

    assert list(Conversation.objects.values_list("key", flat=True)) == ["before"]


def test_a_grid_without_a_case_fails():
    with pytest.raises(AssertionError, match="no case at all"):
        for_each([], lambda: None)
