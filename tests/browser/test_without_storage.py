"""A browser that refuses storage (a web view, a policy): pages work, and what they keep lasts as long as the page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser import EMPTY, serve_scripts

SCRIPTS = Path(__file__).resolve().parents[2] / "static" / "js"
REFUSAL = """for (const name of ["localStorage", "sessionStorage"])
  Object.defineProperty(globalThis, name, { get() { IT } });"""
REFUSALS = {"throws": "throw new DOMException('denied', 'SecurityError');", "is not there": "return null;"}
RUN = """async (script) => {
  document.body.innerHTML = `<time datetime="2001-11-21T22:02:07Z" data-age></time>`;
  return Boolean(await import(`/static/js/${script}.js`));
}"""
SWAPPED = """async () => {
  const drawn = (form) => `<time datetime="2001-11-21T22:02:07Z" ${form}></time>`;
  document.body.innerHTML = drawn("data-clock") + drawn("data-age");
  const { swapTimes } = await import("/static/js/clock.js");
  const shown = () => [...document.querySelectorAll("time")].map((time) => time.textContent);
  const before = shown();
  swapTimes();
  return [before, shown()];
}"""
ERASED = """async () => {
  document.body.dataset.drawnAt = 1_000_000_000;
  const { showsErasedId } = await import("/static/js/moved-page.js");
  return [showsErasedId(1), showsErasedId(2_000_000_000), showsErasedId(2_000_000_000)];
}"""


@pytest.fixture(params=REFUSALS, scope="module")
def window(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A window of such a browser."""
    context = chromium.new_context(timezone_id="UTC", locale="en-GB")
    page = context.new_page()
    page.add_init_script(REFUSAL.replace("IT", REFUSALS[request.param]))
    serve_scripts(page)
    yield page
    context.close()


@pytest.fixture
def place(window: Page) -> Page:
    """An empty page in it."""
    window.goto(EMPTY)
    return window


@pytest.mark.parametrize("script", ["app", "conversation", "approval-inbox", "conversation-list", "call-list"])
def test_scripts_of_pages_run(place: Page, script: str) -> None:
    assert place.evaluate(RUN, script)


def test_a_choice_lasts_as_long_as_the_page(place: Page) -> None:
    before, after = place.evaluate(SWAPPED)

    assert before == ["21 Nov 2001 22:02:07", "21 Nov 2001"]
    assert after == before[::-1]


def test_a_page_that_was_loaded_again_for_an_erased_id_is_taken_for_right(place: Page) -> None:
    assert place.evaluate(ERASED) == [False, True, True]

    place.reload()

    assert place.evaluate(ERASED) == [False, False, False]


def test_no_other_script_asks_the_storage_itself() -> None:
    storage = re.compile(r"\b(local|session)Storage\b")
    asking = [path.name for path in SCRIPTS.glob("*.js") if storage.search(path.read_text())]

    assert asking == ["safe-storage.js"]
