"""Scripts of a transcript's rows in an empty page of a real browser."""

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
