"""What a person has missed: whoever was away ten minutes is told, once, what others did; nobody else is."""

import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.conversation import control, since_left, visits
from conversations.core import page_urls
from conversations.core.principals import SYSTEM, user_principal
from conversations.models import Approval, Conversation, User, Visit
from conversations.models.approval import DECISION_WORDS
from conversations.runs.approvals import decide
from tests.support import held_run, teamwork
from tests.support.cast import client_of

pytestmark = pytest.mark.django_db

HOUR = 3_600_000_000
AWAY = "Since you left"


@pytest.fixture
def work(team: dict[str, User]) -> dict[str, User]:
    """A team with work: everybody there is, and agents that answer."""
    teamwork.team()
    return team


def leave(user: User, ago: int = HOUR) -> None:
    """Have somebody been gone for so long."""
    Visit.objects.update_or_create(user=user, defaults={"last_at": time.time_ns() // 1000 - ago})


def page(user: User) -> str:
    return str(client_of(user).get("/").content.decode())


def missed(user: User) -> dict[str, list[tuple[str, str, str]]]:
    """Return what somebody missed in the last hour: kind → what, by whom, where."""
    since = time.time_ns() // 1000 - HOUR
    missed_items = since_left.since_left(since, str(user_principal(user.username)))
    return (
        {group.words: [(str(r.what), str(r.by), r.href) for r in group.rows] for group in missed_items.groups}
        if missed_items
        else {}
    )


def test_who_comes_back_learns_what_was_decided_asked_and_done_and_by_whom(work: dict[str, User]) -> None:
    decided, waiting = (teamwork.ask(work["admin"], key) for key in ("flood", "fire"))
    decide.decide(work["approver"], decided.id, "reject", message="No.")
    teamwork.say(work["operator"], "tram")
    control.pause(work["operator"], "tram")

    decision = Approval.objects.get(id=decided.id)
    assert missed(work["viewer"]) == {
        "Decided": [("rejected", "april", page_urls.event_url("flood", decision.decided_seq or 0))],
        "Asked, still waiting": [("waits for approval", "", page_urls.event_url("fire", waiting.asked_seq))],
        "Done by people": [("paused", "otto", page_urls.conversation_url("tram"))],
    }
    assert "Decided" not in missed(work["approver"])
    assert "Done by people" not in missed(work["operator"])


def test_who_comes_back_reads_a_response_in_place_of_a_call_as_elsewhere(work: dict[str, User]) -> None:
    decided = teamwork.ask(work["admin"], "flood")
    decide.decide(work["approver"], decided.id, "respond", output="Done by hand.")

    assert [what for what, _, _ in missed(work["viewer"])["Decided"]] == [DECISION_WORDS["respond"]]


def test_who_comes_back_learns_which_runs_ended_and_why(work: dict[str, User]) -> None:
    for key in ("good", "bad"):
        teamwork.say(work["admin"], key)
    held_run.finish(teamwork.claim("good"), {"event": "run.done"})
    held_run.finish(teamwork.claim("bad"), {"event": "run.failed", "reason": "model_error", "error": "It is gone"})

    missed_items = missed(work["viewer"])

    assert [(what, by) for what, by, _ in missed_items["Failed"]] == [("model error", "Dialogue")]
    assert [(what, by) for what, by, _ in missed_items["Finished"]] == [("", "Dialogue")]


def test_only_what_was_not_counted_to_the_end_is_over_a_number(
    work: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(since_left, "MAX_COUNTED", 2)
    by_others, mine = (
        [teamwork.ask(work["admin"], f"{name}-{number}") for number in range(3)] for name in ("theirs", "mine")
    )
    for approvals, by in ((by_others, "approver"), (mine, "admin")):
        for approval in approvals:
            decide.decide(work[by], approval.id, "reject", message="No.")
            held_run.finish(teamwork.claim(approval.conversation.key), {"event": "run.done"})
    since = time.time_ns() // 1000 - HOUR

    missed_items = since_left.since_left(since, str(user_principal(work["admin"].username)))

    assert missed_items is not None
    groups = {group.words: (group.number, group.is_more) for group in missed_items.groups}
    assert groups == {"Decided": (2, True), "Finished": (6, False)}


def test_ten_minutes_are_away_and_less_is_not(work: dict[str, User]) -> None:
    viewer = work["viewer"]
    assert AWAY not in page(viewer)
    teamwork.ask(work["admin"])
    assert AWAY not in page(viewer)

    leave(viewer, visits.AWAY_US - 30_000_000)
    assert AWAY not in page(viewer)
    leave(viewer)

    assert AWAY in page(viewer)
    assert AWAY in page(viewer)  # until dismissed
    assert AWAY not in page(work["operator"])


def test_dismissed_is_dismissed_until_the_next_absence(work: dict[str, User]) -> None:
    teamwork.ask(work["admin"])
    leave(work["viewer"])
    assert AWAY in page(work["viewer"])

    answer = client_of(work["viewer"]).post("/since-left/dismissal/")

    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert AWAY not in page(work["viewer"])
    leave(work["viewer"])
    assert AWAY in page(work["viewer"])


def test_who_missed_nothing_and_who_filters_is_told_nothing(work: dict[str, User]) -> None:
    leave(work["viewer"])
    assert AWAY not in page(work["viewer"])

    teamwork.ask(work["admin"])

    assert AWAY in page(work["viewer"])
    assert AWAY not in client_of(work["viewer"]).get("/?q=water").content.decode()
    assert AWAY not in client_of(work["viewer"]).get("/?part=list").content.decode()


def test_hostile_titles_are_text(work: dict[str, User]) -> None:
    teamwork.ask(work["admin"], "evil")
    Conversation.objects.filter(key="evil").update(title="<img src=x onerror=alert(1)>\u202e")
    leave(work["viewer"])

    assert "<img src=x" not in page(work["viewer"])


def test_the_number_of_queries_does_not_grow_with_what_was_missed(work: dict[str, User]) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            since_left.since_left(1, str(SYSTEM))
        return len(captured)

    teamwork.ask(work["admin"], "one")
    few = queries()
    for n in range(6):
        teamwork.ask(work["admin"], f"more-{n}")

    assert queries() == few


def test_a_page_is_sent_though_the_visit_cannot_be_noted(
    work: dict[str, User], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise visits.DatabaseError("disk full")

    monkeypatch.setattr(visits, "_write", refuse)

    assert client_of(work["viewer"]).get("/").status_code == 200
