"""Reading what is over, in a real browser: where it begins, its true ends, results opened at wish."""

import itertools
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser import LOOKS, violations, work
from tests.browser.transcript import Transcript
from tests.support.live import Server, until
from tests.support.tiers import variants

_number = itertools.count(1)
EVENTS = 400  # of the long one
QUIET = """
import time
Conversation.objects.filter(key={key!r}).update(last_at=time.time_ns() // 1000 - 3_600_000_000)
"""
LONG = f"from tests.support import large_talks; large_talks.write({{key!r}}, events={EVENTS})"


@pytest.fixture(scope="module", autouse=True)
def rows_of_events(server: Server) -> Iterator[None]:
    """Fold the rows anew at the end: `QUIET` changes some, and another file verifies the record of this server."""
    yield
    server.command("rebuild")


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


@pytest.mark.slow
@pytest.mark.parametrize("query", variants(["", "?view=lanes"]))
def test_what_is_over_begins_at_its_first_event(
    page: Page, server: Server, token: str, long_talk: str, query: str
) -> None:
    talk = opened(page, server, token, long_talk, query)

    assert in_view(talk)[0] == 1
    expect(talk.pill).to_have_text("Jump to latest")


@pytest.mark.slow
def test_the_end_of_what_goes_on_is_in_sight_before_any_script_has_run(server: Server, plain_page: Page) -> None:
    key = f"on-{next(_number)}"
    work(server, LONG.format(key=key))

    for view in ("transcript", "lanes", "timeline"):
        plain_page.goto(f"/conversations/{key}/?view={view}")
        rows = plain_page.locator(".rows > :last-child, .timeline-rows > :last-child")  # of each stretch
        expect(rows.last).to_be_in_viewport(ratio=0.4)  # lanes are wider


@pytest.mark.slow
@pytest.mark.parametrize("query", variants(["", "?view=lanes"]))
def test_home_and_end_go_to_the_true_ends(page: Page, server: Server, token: str, long_talk: str, query: str) -> None:
    talk = opened(page, server, token, long_talk, query)

    page.keyboard.press("End")
    until(lambda: talk.is_following and EVENTS in in_view(talk), what="the last event")
    page.keyboard.press("Home")
    until(lambda: 1 in in_view(talk), what="the first event")
    talk.settle()

    assert 1 in in_view(talk)
    assert EVENTS not in talk.rows

    page.keyboard.press("End")
    until(lambda: EVENTS in in_view(talk), what="the last event again")
    assert 1 not in talk.rows  # at once, not page by page


@pytest.mark.thorough
def test_home_in_a_short_one_that_goes_on_leaves_it_live(page: Page, server: Server, token: str) -> None:
    talk = Transcript(page, server, token, f"over-{next(_number)}")
    talk.say(*["wet " * 200 for _ in range(20)])
    talk.open()

    page.keyboard.press("Home")
    until(lambda: 1 in in_view(talk), what="the first event")
    talk.say("more")

    talk.sees()
    expect(talk.pill).to_have_text("1 new from Dialogue")


@pytest.mark.thorough
def test_what_fits_is_followed_though_it_is_over(page: Page, server: Server, token: str) -> None:
    talk = Transcript(page, server, token, f"over-{next(_number)}")
    talk.say("one", "two")
    work(server, QUIET.format(key=talk.key))
    talk.open()
    talk.say("three")

    talk.sees()

    assert talk.is_following
    expect(talk.pill).to_be_hidden()


@pytest.mark.slow
def test_it_goes_on_where_the_reader_left_off(page: Page, server: Server, token: str) -> None:
    talk = Transcript(page, server, token, f"over-{next(_number)}")
    talk.say(*["wet " * 100 for _ in range(30)])
    marked = "from conversations.models import ReadMarker\n"
    marked += f"ReadMarker.objects.create(user=o, conversation=Conversation.objects.get(key={talk.key!r}), last_seq=12)"
    work(server, QUIET.format(key=talk.key) + marked)

    talk.open()

    assert 13 in in_view(talk)[:2]
    assert 12 not in in_view(talk)[1:]


CALLS = [{"status": "start"}, {"status": "success", "output": "none"}]


@pytest.fixture
def talk(page: Page, server: Server, token: str) -> Transcript:
    """A short conversation with a message and a call."""
    made = Transcript(page, server, token, f"taken-{next(_number)}")
    made.say("Is **Elm** dry?", sender="Rosa")
    for step in CALLS:
        made.call(**step)
    return made.open()


def menu(page: Page) -> Locator:
    page.get_by_role("button", name="Copy, download, print").click()
    menu = page.locator("transcript-menu")
    expect(menu).to_be_visible()
    return menu


@pytest.mark.thorough
def test_it_is_copied_as_markdown_and_as_text(talk: Transcript) -> None:
    talk.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    for name, words in (("Copy as Markdown", "> Is **Elm** dry?"), ("Copy as plain text", "    Is **Elm** dry?")):
        menu(talk.page).get_by_role("button", name=name).click()
        expect(talk.page.locator("news-announcer")).to_have_text("Conversation copied")

        copied = talk.page.evaluate("() => navigator.clipboard.readText()")

        assert words in copied
        assert "find returned" in copied
        talk.page.evaluate("() => { document.querySelector('news-announcer').textContent = ''; }")


@pytest.mark.parametrize(
    ("name", "file"),
    variants(
        [("Download Markdown", "{}.md"), ("Download JSON lines", "{}.jsonl"), ("Download trace", "{}.trace.json")]
    ),
)
def test_it_is_downloaded(talk: Transcript, name: str, file: str) -> None:
    with talk.page.expect_download() as got:
        menu(talk.page).get_by_role("link", name=name).click()

    assert got.value.suggested_filename == file.format(talk.key)
    assert got.value.path().stat().st_size > 100


@pytest.mark.slow
def test_results_are_opened_at_wish_and_stay_as_the_reader_leaves_them(talk: Transcript) -> None:
    opened_calls = talk.page.locator(".transcript details.tool[open]")
    expect(opened_calls).to_have_count(0)

    talk.page.keyboard.press("O")
    expect(opened_calls).to_have_count(1)
    talk.call(call_id="c2", status="start")
    talk.sees()
    expect(opened_calls).to_have_count(2)
    opened_calls.first.locator("summary").first.click()
    talk.say("more")
    talk.sees()
    expect(opened_calls).to_have_count(1)
    talk.open()
    expect(opened_calls).to_have_count(2)
    talk.page.keyboard.press("O")

    expect(opened_calls).to_have_count(0)


@pytest.mark.thorough
def test_the_menu_leads_to_both_ends(page: Page, server: Server, token: str, long_talk: str) -> None:
    long = opened(page, server, token, long_talk)

    menu(page).get_by_role("button", name="Latest event").click()
    until(lambda: EVENTS in in_view(long), what="the last event")
    menu(page).get_by_role("button", name="First event").click()

    until(lambda: 1 in in_view(long), what="the first event")


@pytest.mark.slow
def test_paper_has_the_conversation_and_no_chrome(talk: Transcript) -> None:
    with talk.page.context.expect_page() as got:
        menu(talk.page).get_by_role("link", name="Print").click()
    paper = got.value
    paper.emulate_media(media="print")

    expect(paper.locator("details.tool[open]")).to_be_visible()
    expect(paper.get_by_text("events 1 to 3 of 3")).to_be_visible()
    expect(paper.locator("[data-print]")).to_be_hidden()
    assert paper.evaluate("() => document.querySelectorAll('.topbar, .composer').length") == 0
    paper.close()


@pytest.mark.thorough
def test_the_page_itself_prints_its_rows_alone_and_says_which(talk: Transcript) -> None:
    talk.page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    talk.page.emulate_media(media="print")

    expect(talk.row(1)).to_be_visible()
    expect(talk.page.locator("[data-print-note]")).to_contain_text("Events 1 to 3, as loaded.")
    for chrome in (".topbar", ".panel", ".composer", ".conversation-head .verbs", ".pill"):
        expect(talk.page.locator(chrome).first).to_be_hidden()
    talk.page.emulate_media(media="screen")


@pytest.mark.thorough
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_with_the_menu_open(talk: Transcript, scheme: Literal["light", "dark"], width: int) -> None:
    talk.page.emulate_media(color_scheme=scheme)
    talk.page.set_viewport_size({"width": width, "height": 900})
    if width < 1280:
        talk.page.get_by_role("button", name="More", exact=True).click()
    menu(talk.page)

    assert violations(talk.page) == []
    assert talk.page.locator("html").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0


def shown_outline(page: Page) -> Locator:
    page.keyboard.press("h")
    expect(page.locator("transcript-outline [data-outline]").first).to_be_visible()
    return page.locator("transcript-outline")


@pytest.mark.slow
def test_the_outline_follows_the_scroll_and_leads_to_events(
    page: Page, server: Server, token: str, long_talk: str
) -> None:
    talk = opened(page, server, token, long_talk)
    outline = shown_outline(page)
    here = outline.locator("[aria-current]")
    expect(here).to_have_attribute("data-outline", "1")

    talk.wheel(3_000)
    until(lambda: in_view(talk)[0] > 10, what="the scroll")
    top = in_view(talk)[0]
    until(lambda: 1 < int(here.get_attribute("data-outline") or 0) <= top, what="the mark")
    outline.locator('[data-outline="31"]').click()

    expect(talk.row(31)).to_have_attribute("aria-current", "true")
    outline.locator('[data-outline="351"]').click()
    expect(talk.row(351)).to_be_in_viewport()
    expect(outline.locator('[data-outline="351"]')).to_be_visible()  # it stays on the page that was opened


@pytest.mark.thorough
def test_the_outline_is_walked_by_keyboard_and_grows(talk: Transcript) -> None:
    outline = shown_outline(talk.page)
    expect(outline.locator("a")).to_have_count(1)
    expect(outline.locator("a")).to_be_focused()

    talk.say("And Oak?", sender="Rosa")
    expect(outline.locator("a")).to_have_count(2)
    talk.page.keyboard.press("Tab")
    talk.page.keyboard.press("Enter")

    expect(talk.row(4)).to_have_attribute("aria-current", "true")


@pytest.mark.thorough
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing_in_the_outline(talk: Transcript, scheme: Literal["light", "dark"], width: int) -> None:
    talk.page.emulate_media(color_scheme=scheme)
    talk.page.set_viewport_size({"width": width, "height": 900})
    shown_outline(talk.page)

    assert violations(talk.page) == []
    assert talk.page.locator("html").evaluate("(e) => e.scrollWidth - e.clientWidth") == 0
