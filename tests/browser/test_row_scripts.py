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


NESTED = """async () => {
  const { TranscriptRows } = await import("/static/js/transcript-rows.js");
  document.body.innerHTML = '<div class="transcript" data-detail="all"><div class="rows"></div></div>';
  globalThis.rows = new TranscriptRows(document.querySelector(".transcript"));
  globalThis.row = (seq, { within, kind = "message", group = `g${seq}` } = {}) => `<article class="event"
    id="e${seq}" data-seq="${seq}" data-level="chat" data-kind="${kind}" data-sender="a" data-group="${group}"
    ${within ? `data-within="${within}"` : ""}><a class="seq">${seq}</a>
    <time datetime="2026-11-28T10:00:00Z">10:00</time>
    ${group.startsWith("call:") ? '<div class="inner" data-inner></div>' : ""}</article>`;
  globalThis.putNested = (from, to) => {
    for (let seq = from; seq <= to; seq += 1) rows.put(row(seq, { within: "call:a" }));
    return rows.unloadOldest(600);
  };
  globalThis.shown = () =>
    [...document.querySelectorAll("[data-seq]")].map(({ id, dataset }) => id || `…${dataset.seq}`);
  rows.put(row(1, { group: "call:a" }));
}"""


@pytest.fixture
def nested(empty_page: Page) -> Page:
    """A transcript with one call; `putNested` adds events of the run within it and unloads what is too much."""
    empty_page.evaluate(NESTED)
    return empty_page


def test_a_nested_agent_that_works_for_hours_keeps_only_its_newest_rows(nested: Page) -> None:
    for first in range(2, 2_002, 100):
        nested.evaluate("([from, to]) => putNested(from, to)", [first, first + 99])

    notice = nested.locator(".inner > .unloaded")
    shown = nested.evaluate("shown()")
    assert shown[:3] == ["e1", f"…{2_001 - len(shown[2:])}", f"e{2_002 - len(shown[2:])}"]
    assert 300 <= len(shown) <= 600
    assert shown[-1] == "e2001"
    assert notice.inner_text().startswith("Earlier events within the call are not shown")
    assert notice.locator("a").get_attribute("href") == f"?event={shown[1][1:]}#e{shown[1][1:]}"
    assert nested.locator(".inner .day").count() == 0


def test_an_event_within_a_call_that_was_unloaded_does_not_come_back_as_its_newest(nested: Page) -> None:
    nested.evaluate("putNested(2, 1001)")
    before = nested.evaluate("shown()")

    nested.evaluate("rows.put(row(5, { within: 'call:a' }))")
    nested.evaluate("rows.extend(row(6, { within: 'call:a' }) + row(1002, { within: 'call:a' }))")

    assert nested.evaluate("shown()") == [*before, "e1002"]
    assert nested.evaluate("rows.find('g5') ?? null") is None


def test_the_line_about_unloaded_events_stays_when_their_call_is_unloaded(nested: Page) -> None:
    nested.evaluate("putNested(2, 1001)")
    hidden = nested.evaluate("shown()[1]")

    older = nested.evaluate("for (let seq = 1002; seq <= 1652; seq += 1) rows.put(row(seq)); rows.unloadOldest(600)")

    shown = nested.evaluate("shown()")
    assert older == 2  # up to which an older page is loaded: the call alone
    assert shown[0] == hidden


READ = """(count) => {
  putNested(2, count);
  let reads = 0;
  const { get } = Object.getOwnPropertyDescriptor(HTMLElement.prototype, "dataset");
  const dataset = { configurable: true, get() { return (reads += 1), get.call(this); } };
  Object.defineProperty(HTMLElement.prototype, "dataset", dataset);
  rows.put(row(1000, { within: "call:a", kind: "output" }));
  Object.defineProperty(HTMLElement.prototype, "dataset", { configurable: true, get });
  return [reads, document.querySelector("#e1000 > .seq").dataset.from];
}"""


def test_an_output_within_a_call_is_numbered_without_reading_all_rows(nested: Page) -> None:
    reads, parts_from = nested.evaluate(READ, 290)

    assert parts_from == "291–"
    assert reads < 50
