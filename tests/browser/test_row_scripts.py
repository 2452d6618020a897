"""Scripts of a transcript's rows in an empty page of a real browser."""

import pytest
from playwright.sync_api import Page

from conversations.rendering import message_body

SEPARATED = """async (senders) => {
  const { separateRows } = await import("/static/js/row-separators.js");
  document.body.innerHTML = senders.map((sender) => `<article data-seq="1" data-level="chat" data-sender="${sender}">
    <div class="body"><div class="head"><b>${sender.split(":").at(-1)}</b></div></div></article>`).join("");
  separateRows([...document.querySelectorAll("article")]);
  return [...document.querySelectorAll("article")].map((row) => row.hasAttribute("data-follow"));
}"""


def test_another_sender_of_the_same_name_is_named(empty_page: Page) -> None:
    senders = ["agent:Billing", "agent:Billing", "user:Billing", "Billing", "Billing"]

    assert empty_page.evaluate(SEPARATED, senders) == [False, True, False, False, True]


COPIED = """async (html) => {
  document.body.innerHTML = `<json-copy><div data-copies><button data-copy="whole"></button>${html}</div></json-copy>`;
  const texts = [];
  Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => void texts.push(text) } });
  await import("/static/js/json-copy.js");
  document.querySelector("button").click();
  return texts;
}"""


def test_a_result_that_is_drawn_as_fields_is_copied_as_json(empty_page: Page) -> None:
    text = '{"ticket_id": "T-7", "status": "open", "total": 2}'

    assert empty_page.evaluate(COPIED, str(message_body.result(text))) == [text]


COUNTED = """async ([detail, levels]) => {
  const { NewRows } = await import("/static/js/new-rows.js");
  document.body.innerHTML = `<div class="transcript" data-detail="${detail}">${
    levels.map((level) => `<article data-level="${level}"><b class="name">${level}</b></article>`).join("")}</div>`;
  const rows = new NewRows();
  for (const row of document.querySelectorAll("article")) rows.add(row);
  return rows.words();
}"""


@pytest.mark.parametrize(
    ("detail", "says"),
    [("chat", "1 new from chat"), ("steps", "2 new from 2 participants"), ("all", "3 new from 3 participants")],
)
def test_only_rows_that_the_level_of_detail_shows_are_counted(empty_page: Page, detail: str, says: str) -> None:
    assert empty_page.evaluate(COUNTED, [detail, ["chat", "steps", "all"]]) == says


STREAMED = """async (line) => {
  const { LiveText } = await import("/static/js/live-text.js");
  document.body.innerHTML = `<p data-live-text>first</p>`;
  const text = new LiveText();
  for (let n = 0; n < 400; n += 1) {
    text.add("group", line.replace("N", n));
    text.flush(() => document.body);
  }
  const { childNodes, textContent } = document.querySelector("p");
  return [childNodes.length, textContent.slice(0, 52), textContent.slice(-8)];
}"""


@pytest.mark.parametrize("line", ["a" * 2_000 + "\nline N", "a" * 17_000 + "line N"], ids=["lines", "one line"])
def test_a_turn_that_streams_for_hours_keeps_only_its_newest_text(empty_page: Page, line: str) -> None:
    stretches, start, end = empty_page.evaluate(STREAMED, line)

    assert (stretches, end) == (250, "line 399")
    assert start == "The beginning of this turn is too long to show here."
