"""Speak as another by keyboard, be told before what becomes of it, answer a client's call: in a real browser."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import in_every_look, renewed, violations, work
from tests.support.live import Server

LONG = "وكيل المدينة للمياه والطرق " * 6


@pytest.mark.thorough
def test_one_speaks_as_an_agent_with_the_keyboard_alone(served: Server, window: Page) -> None:
    work(served, f"t.say(o, 'speak'); t.say(o, 'speak', client_id='2', sender='agent:' + {LONG!r}, reason='x')")
    window.goto("/conversations/speak/")
    reason = window.get_by_label("Reason for speaking as another")
    expect(reason).to_be_hidden()

    window.keyboard.press("M")
    expect(window.get_by_label("As", exact=True)).to_be_focused()
    window.keyboard.type("Tri")
    expect(window.get_by_label("As", exact=True)).to_have_value("agent:Triage")
    expect(window.get_by_text("No agent will reply. Pick a recipient to get an answer.")).to_be_visible()
    window.keyboard.press("Tab")
    window.keyboard.type("Dialogue")
    expect(window.get_by_text("another message comes first. Then Dialogue answers.")).to_be_visible()
    window.keyboard.press("Tab")
    expect(reason).to_be_focused()
    window.keyboard.press("Tab")
    window.keyboard.type("The street is closed.")
    window.keyboard.press("Control+Enter")  # no reason yet: the browser asks for one
    expect(reason).to_be_focused()
    window.keyboard.type("the model is down")
    window.reload()  # what stands there is kept, as whom too
    expect(reason).to_have_value("the model is down")
    window.keyboard.press("m")
    window.keyboard.press("Control+Enter")

    row = window.locator(".event[data-kind=message]", has_text="The street is closed.")
    expect(row.locator(".principal")).to_have_text("sent by owner")
    expect(row.get_by_text("Reason: the model is down")).to_be_visible()
    expect(window.locator("[data-said]", has_text=re.compile(r"Sent as event \d+"))).to_be_visible()
    expect(window.get_by_label("As", exact=True)).to_have_value("agent:Triage")  # until another one is picked
    assert in_every_look(window, "speak") == {}


@pytest.mark.slow
def test_each_message_under_an_agents_name_shows_who_sent_it(served: Server, window: Page) -> None:
    """A row after one of the same agent repeats no head, but this one."""
    as_triage = "recipient='chat:twice', sender='agent:Triage', content='Go.', reason='x'"
    post = "from conversations.conversation.post_message import post"
    work(served, f"{post}\n[post(o, 'twice', client_id=n, title='Twice' * (n == '1'), {as_triage}) for n in '12']")
    window.goto("/conversations/twice/")
    senders = window.locator(".event[data-kind=message] .principal")
    expect(senders).to_have_text(["sent by owner"] * 2)
    assert window.locator(".event[data-by][data-follow]").count() == 1

    clips = [sender.evaluate("(name) => getComputedStyle(name.closest('.head')).clipPath") for sender in senders.all()]

    assert clips == ["none", "none"]


@pytest.mark.thorough
def test_what_becomes_of_words_changes_before_ones_eyes(served: Server, window: Page) -> None:
    work(
        served,
        "from tests.support import held_run\nt.say(o, 'held'); held_run.finish(t.claim('held'), {'event': 'run.done'})",
    )
    window.goto("/conversations/held/")
    preview = window.locator("[data-prospect]")
    expect(preview).to_be_hidden()

    window.get_by_role("button", name="Pause").click()
    expect(preview).to_have_text(
        "Your message will wait: the conversation is paused. Dialogue answers once the conversation is resumed."
    )
    window.get_by_role("button", name="Resume").click()
    expect(preview).to_be_hidden()


CLIENTS = """
from tests.support import responses as r
from conversations.events import log
first = r.ask("Is it wet?", agent="Dialogue", tools=[r.function("rain")], key="clients"); c = t.claim("clients")
call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "rain", "arguments": "{}"}
call["status"] = "completed"
step = {"event": "tool_step", "name": "rain", "tool_call": "rain-1", "tool_call_id": "c1", "origin": "external"}
done = {"event": "response.completed", "response_id": first, "model": "m", "status": "completed", "output": [call]}
log.append([c.event(one) for one in (step | {"args": {}}, done, {"event": "run.done"})])
"""


@pytest.mark.thorough
def test_a_clients_call_is_answered_in_its_block(served: Server, window: Page) -> None:
    work(served, CLIENTS)
    window.goto("/conversations/clients/")
    call = window.locator(".tool", has_text="rain")
    call.locator("summary").first.click()
    faults: Any = in_every_look(window, "answer")
    call.get_by_label("Output for rain").fill("4 mm")
    call.get_by_label("Reason for supplying the output of rain").fill("its client is gone")

    call.get_by_role("button", name="Supply output").click()

    expect(call.get_by_text("output supplied by user:owner")).to_be_visible()
    expect(call.get_by_role("button", name="Supply output")).to_have_count(0)
    expect(window.get_by_text("output of call")).to_be_visible()
    assert faults == {}
    assert violations(window) == []


DELIVER = """
from conversations.core import ids
from conversations.models import Run
from conversations.runs import claims, deliver_messages
run = Run.objects.get(conversation__key="steer", status="running")
claimed = claims.Claim(run.id, run.attempt, "steer", run.agent, run.kind, run.input_seq, None, None, None)
assert len(deliver_messages.deliver(claimed, ["Dialogue"], 3)) == 1
"""
FINISH = """
from tests.support import held_run
said = {"event": "output", "text": "Only Elm Street, then.", "turn": 3, "final": True}
held_run.finish(claimed, {"event": "run.done", "duration_ms": 1200}, said)
"""


@pytest.mark.thorough
def test_one_steers_an_agent_at_work_by_keyboard_and_is_told_where_it_arrived(served: Server, window: Page) -> None:
    work(served, "t.say(o, 'steer', content='Flood on Elm Street')")
    window.goto("/conversations/steer/")
    when, preview = window.get_by_label("When", exact=True), window.locator("[data-prospect]")
    window.keyboard.press("m")
    window.keyboard.type("Look at Elm Street only.")
    expect(preview).to_have_text(re.compile("another message comes first"))
    expect(when).to_be_hidden()

    work(served, "t.claim('steer')")
    with renewed(served):
        expect(when).to_be_visible()
        window.keyboard.press("Shift+Tab")
        expect(when).to_be_focused()
        window.keyboard.type("at")
        expect(preview).to_have_text("Dialogue gets your message at its next step.")
        assert in_every_look(window, "steer-when") == {}
        when.focus()
        window.keyboard.press("Tab")
        window.keyboard.press("Control+Enter")
        row = window.locator(".event[data-kind=message]", has_text="Look at Elm Street only.")
        mark = row.locator("[data-delivery]")
        expect(mark).to_contain_text("waiting for Dialogue: delivered at its next step")
        expect(when).to_have_value("after_run")

        work(served, DELIVER)
        expect(mark).to_contain_text("Delivered at step 3 to Dialogue")
        work(served, DELIVER.rpartition("assert")[0] + FINISH)
        expect(mark).to_contain_text("Delivered at step 3, answered by Dialogue")
    assert in_every_look(window, "steer") == {}
