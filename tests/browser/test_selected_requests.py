"""Several requests decided together: what each key does, and what the list then says."""

from playwright.sync_api import Page, expect

from tests.browser import work
from tests.support.live import Server

ASK = "t.ask(o, {0!r}, client_id='1', approval_id={0!r}, name='refund', qualified_name='refund', effect='unsafe')"


def pending(server: Server, page: Page, *keys: str) -> None:
    """Have requests wait and the page list them."""
    work(server, "\n".join(map(ASK.format, keys)))
    page.goto("/approvals/")
    page.wait_for_selector("approval-inbox:defined")
    expect(page.locator(f'.ask[data-key="{keys[-1]}"]')).to_be_visible()


def test_enter_in_the_reason_rejects_and_never_approves(served: Server, window: Page) -> None:
    pending(served, window, "first", "second")
    for key in ("first", "second"):
        window.locator(f'.ask[data-key="{key}"] [data-pick]').check()
    reason = window.get_by_label("Reason for rejecting all selected")
    reason.fill("Too risky")

    reason.press("Enter")

    for key in ("first", "second"):
        expect(window.locator(f'[data-decided] .ask[data-key="{key}"]')).to_contain_text("rejected by owner")
