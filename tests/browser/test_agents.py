"""The agents page in a real browser: rows lead on, handoffs are drawn without overlaps, axe finds nothing."""

import itertools

from playwright.sync_api import Page, expect

from tests.browser import in_every_look

BOXES = """() => [...document.querySelectorAll(".handoffs .box > rect")].map((box) => {
  const { left, top, right, bottom } = box.getBoundingClientRect();
  return [left, top, right, bottom];
})"""


def test_a_click_anywhere_in_the_row_of_an_agent_opens_it(window: Page) -> None:
    window.goto("/agents/")
    expect(window.locator("live-state")).to_have_text("Live")

    window.get_by_text("What Triage does").click()

    window.wait_for_url("**/agents/Town%20Hall/Triage/")


def test_no_box_of_the_handoffs_lies_over_another_in_any_look(window: Page) -> None:
    window.goto("/agents/")
    expect(window.locator("live-state")).to_have_text("Live")

    boxes = window.evaluate(BOXES)

    assert len(boxes) == 3
    for (left, top, right, bottom), other in itertools.combinations(boxes, 2):
        assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    assert in_every_look(window, "agents") == {}


WIDEST = """(frame) => {
  const row = frame.querySelector("tbody tr");
  row.querySelector(".name").textContent = "Conversation Format Coordinator";
  row.querySelector("td > .state").lastChild.textContent = "10 waiting for approval";
  for (const cell of row.querySelectorAll("td.wrap")) cell.textContent = "Conversation Format Coordinator, Insights";
  return frame.scrollWidth - frame.clientWidth;
}"""


def test_all_columns_of_the_agents_are_in_sight_at_1280_px(window: Page) -> None:
    window.set_viewport_size({"width": 1280, "height": 800})
    window.goto("/agents/")
    expect(window.locator("live-state")).to_have_text("Live")

    assert window.locator(".table-frame").first.evaluate(WIDEST) == 0


GAPS = """() => {
  const boxes = [...document.querySelectorAll(".tool-page .card")].map((card) => card.getBoundingClientRect());
  return boxes.slice(1).map((box, n) => Math.round(box.top - boxes[n].bottom));
}"""


def test_the_cards_of_an_agent_stand_equally_far_apart_in_one_column(window: Page) -> None:
    window.set_viewport_size({"width": 390, "height": 900})
    window.goto("/agents/Town%20Hall/Triage/")
    expect(window.get_by_role("heading", name="Details")).to_be_visible()

    gaps = window.evaluate(GAPS)

    assert len(gaps) == 2
    assert len(set(gaps)) == 1, gaps
