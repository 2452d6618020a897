"""A row of the list reads a bounded number of a conversation's participants, however many there are."""

import time
from functools import partial

import pytest
from django.db import connection

from conversations.conversation import conversation_list, conversation_row, row_people
from conversations.models import Conversation, Participant
from dashboard.pages import control_panel
from tests.support.growth import database_reads

pytestmark = pytest.mark.django_db


def crowd(key, *, people, agents=0, asked_at=0):
    """Store a conversation with so many participants; agents wrote to each person at `asked_at`, µs UTC."""
    made = Conversation.objects.create(key=key, last_at=time.time_ns() // 1000, messages=people + agents)
    names = [(f"user:p{n:05}", "person") for n in range(people)] + [(f"agent:A{n:05}", "agent") for n in range(agents)]
    Participant.objects.bulk_create(
        Participant(conversation=made, name=name, kind=kind, asked_at=asked_at if kind == "person" else 0)
        for name, kind in names
    )
    return made


def test_a_row_names_the_first_participants_and_says_that_there_are_more():
    most = row_people.MAX_NAMED
    crowd("small", people=most - 1, agents=1)
    crowd("large", people=most, agents=1)

    rows = {row.key: row for row in conversation_list.newest_conversations().rows}

    assert [len(row.participants) for row in rows.values()] == [most, most]
    assert (rows["small"].unmarked_words, rows["large"].unmarked_words) == ("96", "96+")
    assert " and 96+ more" in conversation_row.drawn(rows["large"])


def test_the_api_says_that_it_names_only_the_first_participants(client, team):
    crowd("small", people=2)
    crowd("large", people=2 * row_people.MAX_NAMED)
    client.force_login(team["viewer"])

    items = client.get("/api/v1/conversations").json()["items"]

    listed = {item["conversation_id"]: (len(item["participants"]), item["has_more_participants"]) for item in items}
    assert listed == {"small": (2, False), "large": (row_people.MAX_NAMED, True)}
    assert client.get("/api/v1/conversations/large").json()["has_more_participants"]


@pytest.mark.parametrize("is_asked", [False, True], ids=["nobody asked", "everybody asked"])
@pytest.mark.parametrize("is_analysed", [False, True], ids=["before statistics", "with statistics"])
def test_the_list_and_the_panel_read_no_more_of_a_crowd_than_of_a_group(team, rf, is_asked, is_analysed):
    now = time.time_ns() // 1000 if is_asked else 0
    group, large = (crowd(key, people=people, asked_at=now) for key, people in (("group", 200), ("large", 1_500)))
    request = rf.get("/")
    request.user = team["viewer"]
    if is_analysed:
        connection.cursor().execute("ANALYZE")

    for work in (lambda crowd: conversation_list.find(crowd.key), lambda crowd: control_panel.panel_of(request, crowd)):
        few, many = (database_reads(partial(work, crowd), "conversations_participant") for crowd in (group, large))
        assert many <= 1.2 * few, (few, many)
