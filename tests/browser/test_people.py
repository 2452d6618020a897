"""People in a real browser: the way in by a link, a password, the admin's page, the way out; every page and state."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser import in_every_look
from tests.support.cast import PASSWORD
from tests.support.live import Server


@pytest.fixture
def stranger(chromium: Browser, server: Server) -> Iterator[BrowserContext]:
    """A browser that nobody is signed in with."""
    context = chromium.new_context(base_url=server.url)
    yield context
    context.close()


def add(page: Page, name: str) -> str:
    """Add a viewer as the admin does; return the link shown."""
    page.goto("/people/")
    page.locator("summary", has_text="Add person").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("group", name="Roles", exact=True).get_by_label("viewer").check()
    page.get_by_role("button", name="Add person").click()
    return page.get_by_role("textbox", name=f"Sign-in link for {name}", exact=True).input_value()


@pytest.mark.slow
def test_a_newcomer_comes_in_by_a_link_and_stays_by_a_password(page: Page, stranger: BrowserContext) -> None:
    link = add(page, "maria")
    newcomer = stranger.new_page()

    newcomer.goto(link)
    expect(newcomer.get_by_text("You have no password yet")).to_be_visible()
    newcomer.get_by_role("link", name="Set a password").click()
    newcomer.get_by_label("New password").fill(PASSWORD)
    newcomer.get_by_role("button", name="Set password").click()
    expect(newcomer.get_by_text("Password changed")).to_be_visible()
    newcomer.get_by_label("Account: maria").click()
    newcomer.get_by_role("button", name="Sign out", exact=True).click()

    newcomer.get_by_label("Name").fill("maria")
    newcomer.get_by_label("Password").fill(PASSWORD)
    newcomer.get_by_role("button", name="Sign in").click()
    expect(newcomer).to_have_title(re.compile("Conversations"))
    expect(newcomer.get_by_role("link", name="People")).to_have_count(0)


@pytest.mark.thorough
def test_a_link_is_copied_or_selected(page: Page) -> None:
    link = add(page, "tomas")

    page.get_by_role("button", name="Copy", exact=True).click()

    expect(page.locator("copy-field [role=status]")).to_have_text(re.compile("Copied|Selected"))
    assert link == page.evaluate("document.querySelector('copy-field input').value")


@pytest.mark.thorough
def test_roles_are_saved_and_shown(page: Page) -> None:
    add(page, "rosa")

    row = page.get_by_role("group", name="Roles of rosa")
    row.get_by_label("operator").check()
    page.get_by_role("button", name="Save the roles of rosa").click()

    expect(page).to_have_url(re.compile("#rosa$"))
    expect(row.get_by_label("operator")).to_be_checked()
    expect(row.get_by_label("admin")).not_to_be_checked()


@pytest.mark.slow
def test_a_link_from_another_site_waits_for_a_click(page: Page, stranger: BrowserContext) -> None:
    mail = f"<a href='{add(page, 'vera')}'>Sign in</a>"
    reader = stranger.new_page()
    reader.route("http://mail.example/", lambda route: route.fulfill(body=mail, content_type="text/html"))
    reader.goto("http://mail.example/")

    reader.get_by_role("link").click()
    expect(reader.get_by_text("This link signs you in once")).to_be_visible()
    reader.get_by_role("button", name="Sign in").click()

    expect(reader.get_by_role("link", name="Set a password")).to_be_visible()


@pytest.mark.thorough
def test_signing_out_elsewhere_is_seen_on_an_open_page(page: Page, stranger: BrowserContext) -> None:
    open_page = stranger.new_page()
    open_page.goto(add(page, "walter"))
    open_page.goto("/")
    expect(open_page.locator("live-state")).to_have_text("Live")

    page.get_by_role("button", name="Sign out walter everywhere").click()

    expect(open_page.get_by_text("You are signed out")).to_be_visible()
    open_page.reload()
    expect(open_page).to_have_title(re.compile("Sign in"))


@pytest.mark.thorough
def test_pages_of_strangers_are_well_built(stranger: BrowserContext) -> None:
    page = stranger.new_page()

    page.goto("/sign-in/link/?t=made-up")
    faults = in_every_look(page, "unknown link")
    page.goto("/sign-in/")
    page.get_by_label("Name").fill("nobody")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button").click()
    expect(page.get_by_role("alert")).to_be_visible()
    faults |= in_every_look(page, "wrong password")
    page.set_extra_http_headers({"Sec-Purpose": "prefetch"})
    page.goto("/sign-in/link/?t=made-up")
    faults |= in_every_look(page, "waiting link")

    assert faults == {}


@pytest.mark.thorough
def test_pages_of_the_signed_in_are_well_built(page: Page) -> None:
    page.goto("/account/")
    faults = in_every_look(page, "account")
    add(page, "a-person-with-a-rather-long-name@town-hall.example")
    faults |= in_every_look(page, "people")

    assert faults == {}


@pytest.mark.thorough
def test_static_files_are_guarded_too(server: Server, stranger: BrowserContext) -> None:
    page = stranger.new_page()
    files = []
    page.on("response", lambda response: files.append(response) if "/static/" in response.url else None)

    page.goto("/sign-in/", wait_until="networkidle")

    assert len(files) > 2
    assert {file.header_value("x-content-type-options") for file in files} == {"nosniff"}
    assert {file.header_value("access-control-allow-origin") for file in files} == {None}
