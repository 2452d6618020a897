"""The command palette narrowed by a sign, with the keyboard alone."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import in_every_look, work
from tests.support.live import Server


@pytest.fixture(scope="module")
def talks(served: Server) -> Server:
    """A server with two conversations."""
    work(
        served,
        "for key in ('harbour', 'lighthouse'): t.say(o, f'palette-{key}', content=f'At the {key}', client_id='1')",
    )
    return served


@pytest.fixture
def palette(window: Page, talks: Server) -> Page:
    """A window on a conversation, with the palette open."""
    window.goto("/conversations/palette-harbour/")
    expect(window.locator("command-palette:defined")).to_be_attached()
    window.keyboard.press("Control+k")
    return window


def groups(page: Page) -> list[str]:
    """Return the groups in sight."""
    return [
        name or ""
        for name in page.locator("#palette-options > [role=group]:visible").evaluate_all(
            "(groups) => groups.map((group) => group.getAttribute('aria-label'))"
        )
    ]


@pytest.mark.slow
def test_the_hint_names_the_signs(palette: Page) -> None:
    hint = palette.get_by_role("dialog").locator("footer")

    expect(hint).to_contain_text("> actions")
    expect(hint).to_contain_text("@ agents and participants")
    expect(hint).to_contain_text("# conversations")


@pytest.mark.slow
def test_actions_alone_are_offered_after_a_greater_sign(palette: Page) -> None:
    expect(palette.get_by_role("group", name="Recent conversations")).to_be_visible()
    palette.keyboard.type(">pau")
    expect(palette.get_by_role("option")).to_have_count(1)
    assert groups(palette) == ["On this page"]
    marked = palette.evaluate("() => [...CSS.highlights.get('found')].map((range) => range.toString())")
    assert marked == ["Pau"]

    palette.keyboard.press("Enter")

    expect(palette.get_by_role("button", name="Resume")).to_be_visible()
    palette.keyboard.press("Control+k")
    palette.keyboard.type("> resume")
    palette.keyboard.press("Enter")
    expect(palette.get_by_role("button", name="Pause")).to_be_visible()


@pytest.mark.slow
def test_agents_and_participants_alone_are_offered_after_an_at(palette: Page) -> None:
    palette.keyboard.type("@dial")
    expect(palette.get_by_role("group", name="Agents").get_by_role("option")).to_have_count(1)
    assert groups(palette) == ["Agents", "Conversations of a participant"]
    assert in_every_look(palette, "names", is_part_of_another=True) == {}

    palette.keyboard.press("ArrowDown")
    palette.keyboard.press("Enter")

    palette.wait_for_url("**/?participant=Dialogue")
    expect(palette.locator(".fleet .conversation")).to_have_count(2)


@pytest.mark.slow
def test_conversations_and_an_event_of_this_one_are_offered_after_a_hash(palette: Page) -> None:
    palette.keyboard.type("#light")
    expect(palette.get_by_role("group", name="Conversations", exact=True).get_by_role("option")).to_have_count(1)
    assert groups(palette) == ["Conversations"]
    palette.keyboard.press("Enter")
    palette.wait_for_url("**/conversations/palette-lighthouse/")

    palette.keyboard.press("Control+k")
    palette.keyboard.type("#1")
    expect(palette.get_by_role("option").first).to_contain_text("Event 1 of this conversation")


@pytest.mark.slow
def test_conversations_have_their_state_and_agents_and_hits_their_mark(palette: Page, talks: Server) -> None:
    work(talks, "t.ask(o, 'palette-lighthouse', client_id='mark', name='refund', qualified_name='refund')")
    palette.keyboard.type("palette-")
    waiting = palette.get_by_role("option", name="lighthouse")
    expect(waiting.get_by_role("img", name="Waiting for approval")).to_be_visible()
    expect(waiting.locator(".state")).to_have_attribute("data-state", "waiting")
    expect(waiting.locator("time")).to_have_text("now")
    expect(palette.get_by_role("option", name="harbour").locator(".state")).to_have_attribute("data-state", "open")

    palette.keyboard.press("Control+a")
    palette.keyboard.type("At the")
    hit = palette.get_by_role("group", name="Events").get_by_role("option").first
    expect(hit.locator(".mark")).to_have_text("OW")
    expect(hit.locator(".mark")).to_have_attribute("data-kind", "operator")

    palette.keyboard.press("Control+a")
    palette.keyboard.type("@")
    agent = palette.get_by_role("group", name="Agents").get_by_role("option").first
    expect(agent.locator(".mark[data-hue]")).to_be_visible()
    assert in_every_look(palette, "marks") == {}


@pytest.mark.slow
def test_what_finds_nothing_says_so_and_without_the_sign_all_is_back(palette: Page) -> None:
    palette.keyboard.type("@nobody at all")
    expect(palette.get_by_role("dialog").get_by_role("status")).to_have_text("No results")
    expect(palette.get_by_role("option")).to_have_count(0)

    palette.get_by_role("combobox").fill("")

    expect(palette.get_by_role("group", name="Recent conversations")).to_be_visible()
    assert "Pages and actions" in groups(palette)
    expect(palette.get_by_role("dialog").get_by_role("status")).to_have_text("")


@pytest.mark.parametrize(("address", "label"), [("/", "New conversation"), ("/policies/", "Add rule")])
def test_what_a_page_adds_is_offered_by_its_own_name(palette: Page, address: str, label: str) -> None:
    palette.goto(address)
    expect(palette.locator("command-palette:defined")).to_be_attached()
    palette.keyboard.press("Control+k")
    palette.keyboard.type(">")
    palette.get_by_role("group", name="On this page").get_by_role("option", name=label, exact=True).click()

    expect(palette.locator(".beginning[open] > summary")).to_have_text(label)
