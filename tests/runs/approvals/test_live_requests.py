"""The topic `approvals` with more requests than one frame has: what changes is told, however old the request is."""

import asyncio
import json
from collections.abc import Callable

import pytest

from conversations.models import Approval, User
from conversations.realtime import state_topics
from conversations.realtime.socket_writer import SocketWriter
from conversations.realtime.state_topics import SNAPSHOT, ApprovalsTopic, StateSubscription
from conversations.runs.approvals import decide, inbox, live_requests
from tests.support import teamwork
from tests.support.cast import cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


@pytest.fixture
def people() -> dict[str, User]:
    """Those who work here."""
    teamwork.team()
    return cast()


@pytest.fixture
def oldest_request(people: dict[str, User]) -> Approval:
    """The oldest request, with more later ones in the same conversation than one frame has."""
    oldest = teamwork.ask(people["operator"])
    later = [
        Approval(
            id=f"ask-later-{number:03}", conversation=oldest.conversation, tool_call=f"call-{number}", run=oldest.run,
            asked_seq=oldest.asked_seq, asked_at=oldest.asked_at + number,
        )
        for number in range(1, SNAPSHOT + 20)
    ]  # fmt: skip
    Approval.objects.bulk_create(later)
    return oldest


def sent_versions() -> dict[str, int]:
    """Return the versions of all rows that were sent, as a topic keeps them."""
    return {key: version for key, (_, version) in live_requests.SOURCE.versions(SNAPSHOT).items()}


def test_a_decision_about_an_old_request_is_told(oldest_request, people):
    before = sent_versions()

    decide.decide(people["approver"], oldest_request.id, "approve")

    assert [row["key"] for row in live_requests.SOURCE.changed_rows(["flood"], before)] == [oldest_request.id]
    assert live_requests.SOURCE.changed_rows(["flood"], sent_versions()) == []


def test_a_page_that_comes_after_it_is_told_too(oldest_request, people):
    decide.decide(people["approver"], oldest_request.id, "approve")

    newest = live_requests.SOURCE.newest_rows(SNAPSHOT)

    assert {row["key"]: row["status"] for row in newest}.get(oldest_request.id) == "decided"
    assert len(newest) == SNAPSHOT


def test_a_page_that_comes_after_its_escalation_is_told_and_of_the_latest_changes_too(oldest_request):
    Approval.objects.filter(id=oldest_request.id).update(escalated_seq=99, escalated_to="admin")

    newest = live_requests.SOURCE.newest_rows(SNAPSHOT)

    assert {row["key"]: row["escalated"] for row in newest}.get(oldest_request.id) == "admin"
    assert len(newest) == SNAPSHOT + 1


def test_as_many_escalations_are_told_as_the_page_shows(oldest_request, people):
    Approval.objects.update(escalated_seq=99, escalated_to="admin")
    teamwork.ask(people["operator"], "new")

    shown, _ = inbox.page(status="pending", limit=SNAPSHOT)

    assert {row["key"] for row in live_requests.SOURCE.newest_rows(SNAPSHOT)} == {card.row.id for card in shown}


async def rows_sent(until: Callable[[list[list[str]], int], bool], work: Callable[[], object]) -> list[list[str]]:
    """Return the keys of each frame from a subscription until it is so; given the frames and how often it looked."""
    frames: list[list[str]] = []
    looks = 0

    async def send(message):
        frames.append([row["key"] for row in json.loads(message["text"])["rows"]])

    class Source(type(live_requests.SOURCE)):
        def versions(self, limit):
            nonlocal looks
            looks += 1
            return super().versions(limit)

    topic = ApprovalsTopic()
    topic._source = Source()
    topic.start()
    view = StateSubscription(topic, SocketWriter(send, None), failed=lambda error: None)
    try:
        async with asyncio.timeout(60):
            while not frames:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await asyncio.to_thread(work)
            seen = looks
            while not until(frames, looks - seen):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    finally:
        view.close()
        await topic.stop()
    return frames


def test_a_decision_whose_notification_is_lost_is_found_by_the_next_look(oldest_request, people, monkeypatch):
    monkeypatch.setattr(state_topics, "HEAL_EVERY", 0.02)
    monkeypatch.setattr(state_topics, "should_drop", lambda _: True)

    def approve():
        decide.decide(people["approver"], oldest_request.id, "approve")

    assert asyncio.run(rows_sent(lambda frames, _: len(frames) > 1, approve))[1] == [oldest_request.id]


def test_a_look_sends_nothing_again(oldest_request, monkeypatch):
    monkeypatch.setattr(state_topics, "HEAL_EVERY", 0.02)
    monkeypatch.setattr(state_topics, "COALESCE", 0.01)

    assert len(asyncio.run(rows_sent(lambda _, looks: looks > 5, lambda: None))) == 1
