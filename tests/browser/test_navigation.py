"""The two groups of pages: on a wide screen Admin opens a menu, on a phone four tabs and More."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import sign_in, violations
from tests.support.live import Server

PHONE = {"width": 360, "height": 780}


@pytest.mark.slow
def test_admin_opens_a_menu_and_says_where_one_is(page: Page) -> None:
    page.goto("/")
    main = page.get_by_role("navigation", name="Main")
    assert main.get_by_role("link").all_inner_texts() == [
        "Conversations", "Approvals", "Tool calls", "Agents", "Statistics"
    ]  # fmt: skip

    main.get_by_role("button", name="Admin").click()
    menu = page.get_by_role("navigation", name="Admin")
    assert menu.get_by_role("link").all_inner_texts() == [
        "Audit", "People", "Tokens", "Policies", "Alerts", "Redaction", "Operations", "Import"
    ]  # fmt: skip
    below = menu.bounding_box()
    button = main.get_by_role("button", name="Admin").bounding_box()
    assert below
    assert button
    assert abs(below["x"] - button["x"]) < 20
    assert violations(page) == []

    menu.get_by_role("link", name="Tokens").click()
    expect(page).to_have_title("Tokens · Switchboard")
    expect(page.get_by_role("button", name="Admin")).to_have_attribute("aria-current", "page")


@pytest.mark.slow
def test_what_an_admin_adds_begins_at_one_place(page: Page) -> None:
    """At the right of the head, one primary button a page; and the menu says where one is."""
    pages = {
        "/people/": ["Add person"], "/tokens/": ["Create token"], "/policies/": ["Add rule"],
        "/alerts/": ["Add rule"], "/retention/": ["Place hold", "Set rule"],
        "/policies/budgets/": ["Set budget"], "/import/": [],
    }  # fmt: skip
    page.set_viewport_size({"width": 1440, "height": 900})
    for address, words in pages.items():
        page.goto(address)
        expect(page.get_by_role("button", name="Admin")).to_have_attribute("aria-current", "page")
        if not words:
            continue
        buttons = [page.locator(".head :is(summary, a)", has_text=name) for name in words]
        boxes = [button.bounding_box() for button in buttons]
        head = page.locator(".page > .head").bounding_box()
        assert boxes[-1]
        assert head
        assert abs(boxes[-1]["x"] + boxes[-1]["width"] - head["x"] - head["width"]) < 2, address
        assert all(box and box["y"] == boxes[-1]["y"] for box in boxes), address
        grounds = [button.evaluate("(button) => getComputedStyle(button).backgroundColor") for button in buttons]
        assert len(set(grounds)) == len(grounds), "one of them is primary"

        if address == "/retention/":
            buttons[0].click()
            form = page.get_by_role("button", name="Place hold").bounding_box()
            assert form
            assert form["y"] > boxes[-1]["y"] + boxes[-1]["height"]
            assert form["x"] < head["x"] + 50, "below the head, from its left edge"
            assert violations(page) == []


@pytest.mark.thorough
def test_the_menu_is_opened_walked_and_left_by_keyboard(page: Page) -> None:
    page.goto("/")
    button = page.get_by_role("button", name="Admin")

    button.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Audit")).to_be_focused()
    page.keyboard.press("Escape")

    expect(page.get_by_role("navigation", name="Admin")).to_be_hidden()
    expect(button).to_be_focused()


@pytest.mark.slow
def test_search_stands_at_one_place_on_every_page(page: Page) -> None:
    places: dict[int, dict[str, float | None]] = {1440: {}, 900: {}}
    for address in ("/", "/people/", "/agents/", "/search/?q=a", "/audit/"):
        page.goto(address)
        expect(page.locator("live-state:defined")).to_be_attached()
        for width, at_width in places.items():
            page.set_viewport_size({"width": width, "height": 900})
            box = page.get_by_role("button", name="Search or go to").bounding_box()
            at_width[address] = box and box["x"]

    assert [len(set(at_width.values())) for at_width in places.values()] == [1, 1], places


def test_every_shortcut_is_in_sight_and_the_palette_marks_what_was_typed(page: Page) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/")
    page.locator("h1").click()
    page.keyboard.press("?")
    keys = page.get_by_role("region", name="Shortcuts")
    assert keys.evaluate("(keys) => keys.scrollHeight - keys.clientHeight") <= 0
    page.keyboard.press("Escape")

    page.keyboard.press("Control+k")
    page.keyboard.type("stat")
    expect(page.get_by_role("option", name="Statistics").first).to_be_visible()

    marked = page.evaluate("() => [...CSS.highlights.get('found')].map((range) => range.toString())")
    assert "Stat" in marked
    assert {words.lower() for words in marked} == {"stat"}


@pytest.mark.thorough
def test_a_phone_has_four_tabs_and_more(page: Page) -> None:
    page.set_viewport_size(PHONE)
    page.goto("/alerts/")
    tabs = page.get_by_role("navigation", name="Main").locator(":is(a, button):visible")
    assert [words.split()[0] for words in tabs.all_inner_texts()] == [
        "Conversations", "Approvals", "Tool", "Agents", "More"
    ]  # fmt: skip
    boxes = [tab.bounding_box() for tab in tabs.all()]
    assert all(box and box["height"] >= 44 and box["x"] >= 0 and box["x"] + box["width"] <= 360.5 for box in boxes)

    page.get_by_role("button", name="More").click()
    menu = page.get_by_role("navigation", name="Admin")
    expect(menu.get_by_role("link", name="Alerts")).to_have_attribute("aria-current", "page")
    assert violations(page) == []
    menu.get_by_role("link", name="Statistics").click()

    expect(page).to_have_title("Statistics · Switchboard")


UNDER_THE_BAR = """() => {
  const focused = document.activeElement, bar = document.querySelector(".nav");
  if (bar.contains(focused) || focused === document.body) return null;
  return focused.getBoundingClientRect().bottom > bar.getBoundingClientRect().top ? focused.outerHTML : null;
}"""


def test_the_bar_of_a_phone_covers_nothing_that_has_the_focus(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 400})
    page.goto("/account/")
    stops = page.locator("main :is(a[href], button, input, summary)").count()
    page.get_by_role("heading", name="Account").click()

    covered = []
    for _ in range(stops):
        page.keyboard.press("Tab")
        covered.append(page.evaluate(UNDER_THE_BAR))

    assert stops > 5
    assert list(filter(None, covered)) == []


@pytest.mark.parametrize("width", [1440, 360])
@pytest.mark.thorough
def test_who_has_no_right_to_admin_pages_sees_none(chromium: Browser, server: Server, width: int) -> None:
    context = chromium.new_context(base_url=server.url, viewport={"width": width, "height": 800})
    sign_in(server, context, f"vera{width}", "viewer")
    page = context.new_page()
    page.goto("/")

    expect(page.get_by_role("button", name="Admin")).to_be_hidden()
    if width == 360:
        page.get_by_role("button", name="More").click()
        expect(page.locator("#more-menu").get_by_role("link")).to_have_count(1)
    context.close()


@pytest.mark.slow
def test_the_shortcuts_that_the_help_names_lead_to_every_page_of_the_top_bar(page: Page) -> None:
    page.goto("/")
    names = page.get_by_role("navigation", name="Main").get_by_role("link").all_inner_texts()
    page.keyboard.press("?")
    rows = page.get_by_role("dialog", name="Keyboard shortcuts").locator("section:has(> h3:text-is('Go to')) li")
    keys = {row.locator("span").inner_text(): row.locator("kbd").all_inner_texts() for row in rows.all()}
    assert [name for name in names if name not in keys] == []

    page.goto("/account/")
    for name, combination in keys.items():
        for key in combination:
            page.keyboard.press(key)
        expect(page).to_have_title(re.compile(f"(^|[ )]){name} · Switchboard$"))
        page.wait_for_load_state()  # keys are its scripts'
        page.evaluate("document.activeElement.blur()")  # the page of a search begins in its field


def test_the_help_lists_all_shortcuts_without_scrolling_sideways(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("?")
    shortcuts = page.get_by_role("region", name="Shortcuts")
    expect(shortcuts).to_be_visible()

    for width, height in ((1440, 900), (720, 450), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        assert shortcuts.evaluate("(region) => region.scrollWidth - region.clientWidth") == 0, width
        shortcuts.get_by_text("Abort now").scroll_into_view_if_needed()
        expect(shortcuts.get_by_text("Abort now")).to_be_in_viewport(ratio=1)


def test_pages_are_drawn_in_the_bundled_font(page: Page) -> None:
    page.goto("/")

    assert page.evaluate(
        "document.fonts.load('16px Inter', 'Abc').then((faces) => faces.map((face) => face.status))"
    ) == ["loaded"]
    assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith("Inter")
