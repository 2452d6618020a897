"""Reading what is over, in a real browser: where it begins, its true ends, results opened at wish."""

import itertools

import pytest
from playwright.sync_api import Page, expect

from tests.browser import work
from tests.browser.transcript import Transcript
from tests.support.live import Server, until

_number = itertools.count(1)
EVENTS = 400  # of the long one
QUIET = """
import time
Conversation.objects.filter(key={key!r}).update(last_at=time.time_ns() // 1000 - 3_600_000_000)
"""
LONG = f"from tests.support import large_talks; large_talks.write({{key!r}}, events={EVENTS})"


@pytest.fixture(scope="module")
def long_talk(server: Server) -> str:
    """A long conversation that is over."""
    key = f"over-{next(_number)}"
    work(server, LONG.format(key=key) + QUIET.format(key=key))
    return key


def opened(page: Page, server: Server, token: str, key: str, query: str = "") -> Transcript:
    return Transcript(page, server, token, key).open(query)


def in_view(talk: Transcript) -> list[int]:
    """Return the seqs of the rows of which something is in sight."""
    script = """() => {
      const view = document.querySelector(".transcript").getBoundingClientRect();
      return [...document.querySelectorAll(".transcript > .rows > [data-seq]")]
        .filter((row) => row.checkVisibility())
        .filter((row) => row.getBoundingClientRect().bottom > view.top && row.getBoundingClientRect().top < view.bottom)
        .map((row) => Number(row.dataset.seq));
    }"""
    return [int(seq) for seq in talk.page.evaluate(script)]


@pytest.mark.parametrize("query", ["", "?view=lanes"])
def test_what_is_over_begins_at_its_first_event(
    page: Page, server: Server, token: str, long_talk: str, query: str
) -> None:
    talk = opened(page, server, token, long_talk, query)

    assert in_view(talk)[0] == 1
    expect(talk.pill).to_have_text("Jump to latest")


@pytest.mark.parametrize("query", ["", "?view=lanes"])
def test_home_and_end_go_to_the_true_ends(page: Page, server: Server, token: str, long_talk: str, query: str) -> None:
    talk = opened(page, server, token, long_talk, query)

    page.keyboard.press("End")
    until(lambda: talk.is_following and EVENTS in in_view(talk), what="the last event")
    page.keyboard.press("Home")
    until(lambda: 1 in in_view(talk), what="the first event")
    talk.settle()

    assert 1 in in_view(talk)
    assert EVENTS not in talk.rows


def test_home_in_a_short_one_that_goes_on_leaves_it_live(page: Page, server: Server, token: str) -> None:
    talk = Transcript(page, server, token, f"over-{next(_number)}")
    talk.say(*["wet " * 200 for _ in range(20)])
    talk.open()

    page.keyboard.press("Home")
    until(lambda: 1 in in_view(talk), what="the first event")
    talk.say("more")

    talk.sees()
    expect(talk.pill).to_have_text("1 new from Dialogue")


def test_what_fits_is_followed_though_it_is_over(page: Page, server: Server, token: str) -> None:
    talk = Transcript(page, server, token, f"over-{next(_number)}")
    talk.say("one", "two")
    work(server, QUIET.format(key=talk.key))
    talk.open()
    talk.say("three")

    talk.sees()

    assert talk.is_following
    expect(talk.pill).to_be_hidden()


def test_it_goes_on_where_the_reader_left_off(page: Page, server: Server, token: str) -> None:
    talk = Transcript(page, server, token, f"over-{next(_number)}")
    talk.say(*["wet " * 100 for _ in range(30)])
    marked = "from conversations.models import ReadMarker\n"
    marked += f"ReadMarker.objects.create(user=o, conversation=Conversation.objects.get(key={talk.key!r}), last_seq=12)"
    work(server, QUIET.format(key=talk.key) + marked)

    talk.open()

    assert 13 in in_view(talk)[:2]
    assert 12 not in in_view(talk)[1:]
