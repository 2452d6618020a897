"""Messages that are written from right to left: code in them, and the beginning of a text that is cut in lanes."""

import itertools

import pytest
from playwright.sync_api import Page

from tests.browser.transcript import Transcript
from tests.support.live import Server

CODE = "مرحبا\n\n```python\nprint('مرحبا')\n```\n\nاستخدم `print('مرحبا')` هنا"
LONG = "انفجر أنبوب في الشارع " * 20
_number = itertools.count()
PLACES = """(element, text) => {
  const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT), nodes = [];
  while (walk.nextNode()) nodes.push(walk.currentNode);
  const node = nodes.find(one => one.data.includes(text)), range = document.createRange();
  const at = node.data.indexOf(text);
  range.setStart(node, at);
  range.setEnd(node, at + text.length);
  const box = range.getBoundingClientRect();
  return [box.left, box.right];
}"""


@pytest.fixture
def talk(page: Page, server: Server, token: str) -> Transcript:
    return Transcript(page, server, token, f"right-to-left-{next(_number)}")


def publish(talk: Transcript, text: str, **fields: str) -> None:
    talk.publish({"type": "message", "sender": "Rosa", "recipient": "agent:Desk", "content": text, **fields})


@pytest.mark.parametrize("code", ["pre > code", "p > code"])
def test_code_in_a_message_from_right_to_left_is_laid_out_from_left_to_right(talk: Transcript, code: str) -> None:
    publish(talk, CODE)
    talk.open()
    element = talk.page.locator(f".event:not(.line) .said {code}").last

    name, bracket = (element.evaluate(PLACES, text) for text in ("print", "("))

    assert name[1] <= bracket[0] + 1


@pytest.mark.parametrize("kind", ["message", "verb"])
def test_lanes_show_the_beginning_of_a_text_from_right_to_left(talk: Transcript, kind: str) -> None:
    if kind == "message":
        publish(talk, LONG)
    else:
        talk.stream(event="conversation.paused", agent="Desk", reason=LONG)
    talk.open("?view=lanes")
    says = talk.page.locator(".lane-event .says").last

    box = says.evaluate("element => { const box = element.getBoundingClientRect(); return [box.left, box.right] }")
    first = says.evaluate(PLACES, "انفجر")

    assert says.evaluate("element => element.scrollWidth > element.clientWidth")
    assert box[0] - 1 <= first[0] <= first[1] <= box[1] + 1
