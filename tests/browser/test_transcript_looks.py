"""How the transcript looks and reads: narrow windows, both themes, rules of accessibility."""

import itertools
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser import LOOKS, violations
from tests.browser.transcript import Transcript
from tests.support.live import Server
from tests.support.tiers import variants

_number = itertools.count(1)
UNBROKEN = "https://example.org/" + "a" * 300


@pytest.fixture
def transcript(page: Page, server: Server, token: str) -> Transcript:
    """A conversation with something of everything, some of it too wide."""
    made = Transcript(page, server, token, f"looks-{next(_number)}-{'long' * 20}")
    made.stream(event="conversation.opened", title=f"A title {'that goes on ' * 12}")
    made.say(f"Look at {UNBROKEN}", f"```\n{'wide code ' * 40}\n```", sender="Rosa")
    made.say("# Head\n\n- one\n- two\n\n`code`", '{"category": "parks", "wish": "a bench"}')
    made.call(
        "feedback_formatter_tool_with_a_long_name", status="start", args={"topic": UNBROKEN, "deep": {"list": [1]}}
    )
    made.call("feedback_formatter_tool_with_a_long_name", status="error", error="McpError: 503", duration_ms=4000)
    made.stream(event="agent.handoff", from_agent="Triage", to_agent="Format Coordinator", reason="two topics")
    made.stream(event="weather.alert", level="orange", area=["Aldersund", UNBROKEN])
    made.stream(event="record.gap", reason="trimmed", why="The stream was trimmed.", lost=3)
    made.publish({"type": "control", "sender": "agent:Triage", "recipient": "agent:Dialogue", "content": "be brief"})
    made.stream(event="token", agent="Format Coordinator", text=f"Still writing {UNBROKEN}", index=0)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("width", variants([360, 390]))
def test_nothing_scrolls_sideways_on_a_narrow_screen(transcript: Transcript, width: int) -> None:
    transcript.page.set_viewport_size({"width": width, "height": 800})
    transcript.open()
    for details in transcript.page.locator(".event details").all():
        details.evaluate("(d) => { d.open = true; }")

    wide = "(e) => e.scrollWidth - e.clientWidth"
    assert transcript.page.locator("html").evaluate(wide) == 0
    assert transcript.page.locator(".transcript").evaluate(wide) == 0


@pytest.mark.thorough
def test_a_transcript_for_print_is_as_wide_as_a_phone(transcript: Transcript) -> None:
    transcript.page.set_viewport_size({"width": 390, "height": 844})

    transcript.page.goto(f"/conversations/{transcript.key}/print/")

    bodies = transcript.page.locator(".rows > .event > .body")
    widths = bodies.evaluate_all("(all) => all.map((body) => body.getBoundingClientRect().width)")
    assert widths
    assert min(widths) > 250, widths


@pytest.mark.slow
def test_a_calls_result_begins_where_its_arguments_do(transcript: Transcript) -> None:
    transcript.call("refund", status="start", args={"why": "long words " * 60})
    transcript.call("refund", status="success", output="done")
    transcript.open()
    call = transcript.page.locator(".tool").last
    call.evaluate("(d) => { d.open = true; }")

    tops = "(sides) => [...sides.children].map((side) => side.querySelector('.cap').getBoundingClientRect().top)"
    arguments, result = call.locator(".sides").evaluate(tops)

    assert arguments == result


MIDDLES = """(row) => [".seq", ":scope > time", ".tool > summary"].map((part) => {
  const text = document.createRange();
  text.selectNodeContents(row.querySelector(part));
  const { top, bottom } = text.getBoundingClientRect();
  return (top + bottom) / 2;
})"""


@pytest.mark.slow
def test_number_and_time_of_a_call_stand_beside_its_line(transcript: Transcript) -> None:
    for n in range(2):
        transcript.call(call_id=f"c{n}", status="start", args={"n": n})
        transcript.call(call_id=f"c{n}", status="error", error="Refused", duration_ms=5)
    transcript.open()
    row = transcript.page.locator(".event[data-kind=tool_step][data-follow]")
    expect(row.locator(".reason")).to_have_text("Refused")

    seq, time, line = row.evaluate(MIDDLES)

    assert abs(seq - line) < 2
    assert abs(time - line) < 2


@pytest.mark.thorough
def test_a_long_name_among_the_voices_leaves_its_kind_on_one_line(transcript: Transcript) -> None:
    transcript.say("hello", sender=f"agent:{'Averylongname' * 9}")
    transcript.open()

    heights = [item.evaluate("(li) => li.offsetHeight") for item in transcript.page.locator(".voices > li").all()]

    assert len(heights) > 1
    assert len(set(heights)) == 1


@pytest.mark.slow
def test_details_open_over_the_transcript_on_a_narrow_screen(transcript: Transcript) -> None:
    transcript.page.set_viewport_size({"width": 390, "height": 800})
    transcript.open()
    details = transcript.page.locator("button[aria-controls=panel]")
    panel = transcript.page.locator("conversation-panel")
    expect(panel).to_be_hidden()

    details.click()

    expect(panel).to_be_visible()
    expect(details).to_have_attribute("aria-expanded", "true")
    assert panel.evaluate("(p) => p.scrollWidth - p.clientWidth") == 0
    transcript.page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(details).to_be_focused()


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_axe_finds_nothing(transcript: Transcript, scheme: Literal["light", "dark"], width: int) -> None:
    transcript.page.set_viewport_size({"width": width, "height": 900})
    transcript.page.emulate_media(color_scheme=scheme)
    transcript.open()
    for details in transcript.page.locator("details.tool, details.more").all():
        details.evaluate("(d) => { d.open = true; }")
    transcript.row(2).locator(".mark").click()

    assert violations(transcript.page) == []


@pytest.mark.slow
def test_the_page_reads_well_without_scripts(transcript: Transcript, plain_page: Page) -> None:
    transcript.open()

    plain_page.goto(transcript.page.url)

    expect(plain_page.locator("#e3")).to_contain_text("wide code")
    expect(plain_page.locator("[data-live-text]")).to_contain_text("Still writing")


@pytest.mark.slow
def test_agents_that_share_a_hue_have_marks_that_differ(page: Page, server: Server, token: str) -> None:
    talk = Transcript(page, server, token, "many-hues")
    for number in range(15):
        talk.say("Here.", sender=f"agent:Clerk {number}")
    talk.open()
    facts = "(marks) => marks.map(({ title, dataset }) => [title, dataset.hue, dataset.pattern ?? '0'])"
    looks = {name: (hue, pattern) for name, hue, pattern in page.locator(".rows .event > .mark").evaluate_all(facts)}

    assert len(looks) == 15
    assert len(set(looks.values())) == 15
    assert sum(pattern == "0" for _, pattern in looks.values()) == 9, "Triage, whom they speak to, has the tenth hue"
    shadows = page.locator(".rows .event > .mark[data-pattern='1']").first.evaluate(
        "(m) => getComputedStyle(m).boxShadow"
    )
    assert "2px inset" in shadows

    page.goto(f"{page.url.partition('?')[0]}?view=graph")
    nodes = page.locator(".voice[data-hue]")
    expect(nodes.first).to_be_visible()
    drawn = """(nodes) => nodes.map(({ dataset, firstElementChild }) => {
      const { stroke, strokeWidth, strokeDasharray } = getComputedStyle(firstElementChild.nextElementSibling);
      return [dataset.name, [stroke, strokeWidth, strokeDasharray].join(" ")];
    })"""
    outlines = dict(nodes.evaluate_all(drawn))
    assert len(outlines) == 16
    assert len(set(outlines.values())) == 16


def test_a_state_in_the_head_begins_with_the_agents_name_whatever_its_script(
    page: Page, server: Server, token: str
) -> None:
    """An English sentence runs from the left, also where an Arabic name begins it."""
    message = {"type": "message", "sender": "agent:مساعد", "recipient": "user", "content": "Hello."}
    message["conversation_id"] = "head-state"
    assert server.publish(token, "chat:head-state", message)[0] == 201
    page.goto("/conversations/head-state/")
    words = page.locator(".live-state b", has_text="is active")

    name, verb = words.evaluate("""(words) => [[0, 5], [9, 15]].map(([begin, end]) => {
      const range = document.createRange();
      range.setStart(words.firstChild, begin);
      range.setEnd(words.firstChild, end);
      return range.getBoundingClientRect().left;
    })""")
    assert name < verb
