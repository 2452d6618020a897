"""Ages in words, as the server draws them: those of static/js/clock.js, so that no script has to change one."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser

from conversations.rendering.timestamps import age, duration
from tests.browser import open_empty_page

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
AGES = {
    0: "now", 9: "now", 10: "10 s", 59: "50 s", 60: "1 min", 3599: "59 min", 3600: "1 h", 86399: "23 h",
    86400: "21 Nov", 400 * 86400: "18 Oct 2025", -9: "now", -10: "in 10 s", -7200: "in 2 h",
    -2 * 86400: "24 Nov 12:00:00",
}  # fmt: skip
IN_THE_PAGE = """async ([now, times]) => {
  const { age } = await import("/static/js/clock.js");
  return times.map((time) => age(new Date(time), new Date(now)));
}"""

AFTER_STATES = {0: "just now", 9: "just now", 10: "10 s", 125: "2 min"}
IN_SENTENCES = {125: "2 min ago", 3 * 3600: "3 h ago", 2: "now", -125: "in 2 min"}
DRAWN = """async ([form, seconds]) => {
  const { drawTimes } = await import("/static/js/clock.js");
  const moments = seconds.map((ago) => new Date(Date.now() - ago * 1000).toISOString());
  document.body.innerHTML = moments.map((moment) => `<time datetime="${moment}" data-age="${form}"></time>`).join("");
  drawTimes();
  return [...document.querySelectorAll("time")].map((time) => time.textContent);
}"""


@pytest.mark.parametrize("seconds", AGES)
def test_an_age_has_one_unit_and_becomes_a_day(seconds: int):
    assert age(NOW - timedelta(seconds=seconds), NOW) == AGES[seconds]


def test_the_page_says_the_same(chromium: Browser):
    context = chromium.new_context(timezone_id="UTC", locale="en-GB")
    page = context.new_page()
    open_empty_page(page)
    moments = [(NOW - timedelta(seconds=seconds)).isoformat() for seconds in AGES]

    assert page.evaluate(IN_THE_PAGE, [NOW.isoformat(), moments]) == list(AGES.values())

    context.close()


@pytest.mark.parametrize("seconds", AFTER_STATES)
def test_the_age_of_a_state_is_never_a_bare_now(seconds: int):
    assert age(NOW - timedelta(seconds=seconds), NOW, after_state=True) == AFTER_STATES[seconds]


@pytest.mark.parametrize("seconds", IN_SENTENCES)
def test_an_age_in_a_sentence_is_followed_by_ago(seconds: int):
    assert age(NOW - timedelta(seconds=seconds), NOW, in_text=True) == IN_SENTENCES[seconds]


def test_the_page_draws_it_so_too(chromium: Browser):
    context = chromium.new_context(timezone_id="UTC", locale="en-GB")
    page = context.new_page()
    open_empty_page(page)

    assert page.evaluate(DRAWN, ["ago", list(IN_SENTENCES)]) == list(IN_SENTENCES.values())
    assert page.evaluate(DRAWN, ["state", list(AFTER_STATES)]) == list(AFTER_STATES.values())

    context.close()


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (999.4, "999 ms"),
        (999.7, "1.0 s"),
        (59_940, "59.9 s"),
        (59_970, "1 min 00 s"),
        (3_599_400, "59 min 59 s"),
        (3_599_999, "1.0 h"),
    ],
)
def test_a_duration_is_never_a_whole_of_the_next_unit(ms: float, text: str):
    assert duration(ms) == text
