"""A moment of the past in every view: what is drawn, what is said of it, and that nothing can be done in it."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from conversations.conversation import control
from conversations.models import Approval, Conversation, User
from conversations.runs.approvals import decide
from tests.dashboard.pages.test_conversation_page import seqs
from tests.support import large_talks, teamwork
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db

KEY = "noise"


@pytest.fixture
def owner() -> User:
    """Somebody who may do everything."""
    return person("owner", "admin")


@pytest.fixture
def browser(owner: User) -> Client:
    """Their browser, at a conversation whose request was approved, and which was paused after that."""
    teamwork.team()
    approval = teamwork.ask(owner, KEY)
    decide.decide(owner, approval.id, "approve")
    teamwork.go_on(approval)
    control.pause(owner, KEY)
    return client_of(owner)


def opened(browser: Client, query: str, key: str = KEY) -> str:
    """Open a page."""
    answer = browser.get(reverse("conversation", args=[key]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


def bar_text(html: str) -> str:
    """Return what the bar says, without markup."""
    line = re.search(r"<p class=\"moment\".*?</p>", html, re.DOTALL)
    assert line
    return " ".join(re.sub(r"<[^>]*>", " ", line[0]).split())


def test_a_transcript_ends_with_the_moment_and_the_request_waits_again(browser: Client) -> None:
    html = opened(browser, "?at=6")

    assert seqs(html)[-1] == 6
    assert bar_text(html).startswith("As of event 6 of ")
    assert "Waiting for approval" in bar_text(html)
    assert 'data-status="waiting"' in html
    assert re.search(r"<dt>Approval requests waiting</dt><dd[^>]*>1</dd>", html.partition('id="panel"')[2])


def test_nothing_is_done_in_the_past(browser: Client) -> None:
    html = opened(browser, "?at=6")

    assert "<message-composer" not in html
    assert "<read-marker" not in html
    assert 'name="decision"' not in html
    assert "as-of" in html


@pytest.mark.parametrize("view", ["lanes", "timeline", "graph"])
def test_every_view_has_the_moment(browser: Client, view: str) -> None:
    html = opened(browser, f"?view={view}&at=6")

    assert bar_text(html).startswith("As of event 6 of ")
    assert 'data-at="6"' in html
    assert "at=6" in html


def test_lanes_end_with_a_line_for_now_unless_they_show_the_past(browser: Client) -> None:
    line = '<div class="now"'

    assert line in opened(browser, "?view=lanes")
    assert line not in opened(browser, "?view=lanes&at=6")


def test_a_timeline_of_the_past_knows_no_later_end(browser: Client) -> None:
    then, now = opened(browser, "?view=timeline&at=6"), opened(browser, "?view=timeline")

    assert re.search(r'data-kind="wait"[^>]*data-state="waiting"', then)
    assert not re.search(r'data-kind="wait"[^>]*data-state="waiting"', now)
    assert 'data-head="6"' in then
    assert re.search(r'<span class="took"><time [^>]*data-clock="time"', now)  # a date has no space there


def test_a_run_that_waits_now_worked_before(owner: User) -> None:
    teamwork.team()
    approval = teamwork.ask(owner, "pipe")
    browser = client_of(owner)

    then = opened(browser, f"?view=timeline&at={approval.asked_seq - 1}", "pipe")
    now = opened(browser, "?view=timeline", "pipe")

    assert re.search(r'data-kind="run"[^>]*data-state="running"', then)
    assert re.search(r'data-kind="run"[^>]*data-state="waiting"', now)


def test_a_call_waits_in_the_timeline_until_it_is_decided(browser: Client) -> None:
    approval = Approval.objects.get()

    requested, decided = (
        opened(browser, f"?view=timeline&at={seq}") for seq in (approval.asked_seq, approval.decided_seq)
    )

    assert re.search(r'data-kind="call"[^>]*data-state="waiting"', requested)
    assert not re.search(r'data-kind="call"[^>]*data-state="waiting"', decided)


def test_a_graph_of_the_past_counts_no_later_message(browser: Client) -> None:
    large_talks.write("large", events=100)

    assert "all 20 events" in opened(browser, "?view=graph&at=20", "large")


def test_entries_of_the_past_go_back_to_its_beginning(browser: Client) -> None:
    large_talks.write("large", events=400)
    address = reverse("conversation-entries", args=["large"])

    newest = browser.get(f"{address}?at=300").json()
    older = browser.get(f"{address}?at=300&before={newest['first']}").json()

    assert newest["last"] == 300
    assert not newest["has_newer"]
    assert older["last"] == newest["first"] - 1


def test_the_bar_tells_words_figures_and_the_gaps_ahead(browser: Client) -> None:
    html = browser.get(reverse("conversation-playhead", args=[KEY]) + "?at=2").content.decode()

    head = Conversation.objects.get(key=KEY).head_seq
    gaps = re.search(r'data-gaps="([\d,]*)"', html)
    assert gaps
    assert len(gaps[1].split(",")) == head - 2
    assert re.search(r"<dt>Messages</dt><dd[^>]*>1</dd>", html)


def test_who_paused_it_is_said_from_then_on(browser: Client) -> None:
    head = Conversation.objects.get(key=KEY).head_seq

    assert "Paused by you" in bar_text(opened(browser, f"?at={head}"))
    assert "Paused" not in bar_text(opened(browser, f"?at={head - 1}"))


@pytest.mark.parametrize("at", ["0", "x", "-3", "9" * 40])
def test_a_mangled_moment_is_the_present(browser: Client, at: str) -> None:
    assert 'class="moment"' not in opened(browser, f"?at={at}")


def test_a_moment_beyond_the_head_is_the_head(browser: Client) -> None:
    head = Conversation.objects.get(key=KEY).head_seq

    assert f"As of event {head} of {head}" in bar_text(opened(browser, "?at=999"))
