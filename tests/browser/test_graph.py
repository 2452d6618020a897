"""The graph of a conversation in a real browser: live, wide and narrow, with and without scripts."""

import itertools
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser import LOOKS, violations
from tests.browser.transcript import Transcript
from tests.support.live import Server

_number = itertools.count(1)


@pytest.fixture
def talk(page: Page, server: Server, token: str) -> Transcript:
    """A conversation in which two agents spoke, open as a graph."""
    made = Transcript(page, server, token, f"graph-{next(_number)}")
    made.say("one", "two")
    made.call(status="start")
    page.goto(f"/conversations/{made.key}/?view=graph")
    expect(page.locator("conversation-graph:defined")).to_be_visible()
    return made


def test_numbers_and_new_voices_come_live(talk: Transcript) -> None:
    talk.say("three")
    talk.say("from somebody new", sender="agent:Insights")

    expect(talk.page.locator(".graph title", has_text="Dialogue to Triage, 3 times")).to_be_attached()
    expect(talk.page.locator(".graph tbody tr", has_text="Insights")).to_be_visible()
    expect(talk.page.locator(".graph [data-part]")).to_have_attribute("data-head", str(talk.head))


def test_a_key_leads_to_the_lanes_and_another_back(talk: Transcript) -> None:
    talk.page.keyboard.press("g")
    talk.page.keyboard.press("l")
    expect(talk.page.locator("live-transcript:defined")).to_be_visible()

    talk.page.keyboard.press("g")
    talk.page.keyboard.press("r")

    expect(talk.page.locator(".graph svg")).to_be_visible()


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_and_only_the_picture_scrolls_sideways(
    talk: Transcript, scheme: Literal["light", "dark"], width: int
) -> None:
    talk.say("one more", sender=f"agent:{'long name ' * 15}")
    talk.page.emulate_media(color_scheme=scheme)
    talk.page.set_viewport_size({"width": width, "height": 900})
    talk.page.reload()

    assert violations(talk.page) == []
    assert talk.page.locator("html").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0
    assert talk.page.locator(".graph").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0


def test_it_reads_well_without_scripts(talk: Transcript, plain_page: Page) -> None:
    plain_page.goto(f"/conversations/{talk.key}/?view=graph")

    expect(plain_page.locator(".graph tbody tr")).to_have_count(2)
    expect(plain_page.locator(".graph svg")).to_be_visible()
