"""A run that was run again offers that no longer: on opening, live, and once the newer attempt's page is loaded."""

import pytest
from playwright.sync_api import Page, expect

from conversations.core.principals import SYSTEM, token_principal
from conversations.events import log
from conversations.rendering import event_renderer
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
OPEN = """async (html) => {
  document.body.innerHTML = `<div id="t"><div class="rows">${html}</div></div>`;
  const { TranscriptRows } = await import("/static/js/transcript-rows.js");
  globalThis.rows = new TranscriptRows(document.querySelector("#t"));
}"""


def drawn() -> list[str]:
    """Return the rows of a run that failed, of its repetition, and of the repetition's failure."""
    log.append(
        [
            unchecked("c", {"event": "run.queued", "run_id": "r1", "agent": "A", "input_seq": 1}, SYSTEM),
            unchecked("c", {"event": "run.failed", "run_id": "r1", "agent": "A", "reason": "error"}, SYSTEM),
            unchecked(
                "c",
                {"event": "run.queued", "run_id": "r2", "agent": "A", "input_seq": 1, "reason": "again: r1"},
                SYSTEM,
            ),
            unchecked("c", {"event": "run.failed", "run_id": "r2", "agent": "A", "reason": "error"}, SYSTEM),
        ]
    )
    renderer = event_renderer.EventRenderer("c")
    return [str(renderer.draw(stored).html) for stored in log.newest_page("c").events]


def test_a_newer_attempt_takes_the_button_away_live_and_has_its_own_at_its_end(empty_page: Page) -> None:
    queued, failed, again, failed_again = drawn()
    empty_page.evaluate(OPEN, queued + failed)
    buttons = empty_page.locator('button[form="again"]')
    expect(buttons).to_have_count(1)
    expect(buttons.first).not_to_have_attribute("hidden", "")

    empty_page.evaluate("(html) => rows.put(html)", again)
    expect(buttons.first).to_have_attribute("hidden", "")
    empty_page.evaluate("(html) => rows.put(html)", failed_again)

    expect(buttons).to_have_count(2)
    expect(buttons.nth(1)).not_to_have_attribute("hidden", "")
    expect(buttons.first).to_have_attribute("hidden", "")


def test_an_opened_page_and_an_older_page_before_it_offer_it_once(empty_page: Page) -> None:
    queued, failed, again, failed_again = drawn()
    buttons = empty_page.locator('button[form="again"]:not([hidden])')

    empty_page.evaluate(OPEN, queued + failed + again + failed_again)
    expect(buttons).to_have_count(1)
    empty_page.evaluate(OPEN, again + failed_again)
    empty_page.evaluate("(html) => rows.prepend(html)", queued + failed)

    expect(empty_page.locator('button[form="again"]')).to_have_count(2)
    expect(buttons).to_have_count(1)


def test_a_claim_from_outside_takes_no_button_away() -> None:
    claim = {"event": "run.queued", "run_id": "r9", "agent": "A", "input_seq": 1, "reason": "again: r1"}
    log.append([unchecked("claims", claim, token_principal("robot"))])

    (stored,) = log.newest_page("claims").events

    assert "data-again-of" not in str(event_renderer.EventRenderer("claims").draw(stored).html)
