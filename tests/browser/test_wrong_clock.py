"""A browser whose clock is hours off: ages, deadlines and what counts as recent go by the server's time."""

import pytest
from playwright.sync_api import Page

SHIFTED = """([shiftMs, drawnAtMs]) => {
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...given) { given.length ? super(...given) : super(Real.now() + shiftMs); }
    static now() { return Real.now() + shiftMs; }
  };
  document.body.dataset.drawnAt = (Real.now() + drawnAtMs) * 1000;
}"""
AGES = """async () => {
  const { serverNow } = await import("/static/js/server-time.js");
  const { drawTimes } = await import("/static/js/clock.js");
  const real = Date.now() - %d;
  for (const ms of [-360_000, 60_000 * 6.5]) {
    const time = document.body.appendChild(document.createElement("time"));
    time.dataset.age = "";
    time.dateTime = new Date(real + ms).toISOString();
  }
  drawTimes();
  const { noteServerTime } = await import("/static/js/server-time.js");
  const ages = [...document.querySelectorAll("time")].map((time) => time.textContent);
  const off = Math.abs(serverNow().getTime() - real);
  noteServerTime(Date.now() + 1_000); // the clock was set right meanwhile
  return [ages, off < 5_000, Math.abs(serverNow().getTime() - Date.now()) < 100];
}"""
TIME_LEFT = """async () => {
  await import("/static/js/decision-form.js");
  const real = Date.now() - %d;
  const at = (ms) => new Date(real + ms).toISOString();
  const form = document.createElement("decision-form");
  const bar = `<svg data-since="${at(-300_000)}" data-until="${at(300_000)}"><rect></rect></svg>`;
  form.innerHTML = `<form><i class="terms"></i>${bar}</form>`;
  document.body.append(form);
  const rect = form.querySelector("rect");
  while (!rect.hasAttribute("width")) await new Promise(requestAnimationFrame); // until the bar is drawn
  return Number(rect.getAttribute("width"));
}"""
SHIFTS = [3 * 3600_000, -5 * 3600_000]


@pytest.mark.parametrize("shift_ms", SHIFTS)
def test_ages_are_the_servers(empty_page: Page, shift_ms: int) -> None:
    empty_page.evaluate(SHIFTED, [shift_ms, 0])

    assert empty_page.evaluate(AGES % shift_ms) == [["6 min", "in 6 min"], True, True]


@pytest.mark.parametrize("shift_ms", SHIFTS)
def test_the_time_that_is_left_is_the_servers(empty_page: Page, shift_ms: int) -> None:
    empty_page.evaluate(SHIFTED, [shift_ms, 0])

    assert 45 < empty_page.evaluate(TIME_LEFT % shift_ms) < 55


def test_an_answer_to_a_script_sets_it_right(empty_page: Page) -> None:
    empty_page.route(
        "**/answer", lambda route: route.fulfill(json={}, headers={"Date": "Thu, 01 Jan 2026 00:00:00 GMT"})
    )

    year = empty_page.evaluate("""async () => {
      const { json } = await import("/static/js/fetch.js");
      await json("/answer");
      return (await import("/static/js/server-time.js")).serverNow().getUTCFullYear();
    }""")

    assert year in (2025, 2026)
