"""Escalated requests come first as far as their bytes allow; what does not fit is in its place among the others."""

import pytest

from conversations.models import Approval
from conversations.runs.approvals import inbox
from conversations.runs.approvals.inbox_filters import Filters
from tests.support import teamwork

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
SIZE = 1_000  # bytes of each request, at least


@pytest.fixture
def escalated(people, monkeypatch):
    """Six large requests that are escalated, and one that is not."""
    monkeypatch.setattr(inbox, "MAX_BYTES", 3 * SIZE)
    teamwork.team()
    ids = [teamwork.ask(people["operator"], key=f"late{n}", why="é" * (SIZE // 2)).id for n in range(6)]
    Approval.objects.update(escalated_seq=9, escalated_to="approver")
    return [*ids, teamwork.ask(people["operator"], key="new").id]


def pages(**options):
    """Read all pages; return the ids of each."""
    before, ids_of_pages = "", []
    while before is not None:
        cards, before = inbox.page(status="pending", before=before, is_oldest_first=True, **options)
        ids_of_pages.append([card.row.id for card in cards])
    return ids_of_pages


def test_a_page_has_as_many_as_fit_and_none_is_lost_or_repeated(escalated):
    first, *others = pages()

    assert first[:2] == escalated[:2]
    assert len(first) <= 7
    assert sorted(id_ for page in (first, *others) for id_ in page) == sorted(escalated)


def test_with_filters_it_is_the_same(escalated):
    read = [id_ for page in pages(filters=Filters(agent="Dialogue")) for id_ in page]

    assert sorted(read) == sorted(escalated)


def test_their_bodies_are_chosen_before_they_are_read(escalated, monkeypatch):
    read, card_of = [], inbox._card

    def card(row, *more):
        read.append(row.id)
        return card_of(row, *more)

    monkeypatch.setattr(inbox, "_card", card)
    inbox.page(status="pending", is_oldest_first=True, limit=1)

    assert sorted(read) == escalated[:3]  # two that fit, and the first of the others
