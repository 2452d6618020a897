"""Event → HTML: groups, repeats, levels, principals, times. No database is used."""

import json
import re

import pytest

from conversations.events.log.records import CallEvents, Stored
from conversations.rendering import event_renderer, event_rows
from conversations.rendering.event_renderer import EventRenderer
from conversations.runs.approvals import decide
from tests.support.drawn_html import Seen

AT = 1_795_298_527_000_000  # 2026-11-21 22:02:07 UTC
KINDS = [
    ("message", {"sender": "agent:Dialogue", "recipient": "agent:Triage", "content": "hello"}),
    ("control", {"sender": "user:maria", "recipient": "agent:Triage", "content": "hello"}),
    ("output", {"agent": "Dialogue", "text": "hello", "usage": {"input_tokens": 1200, "output_tokens": 5}}),
    ("user_message", {"sender": "rosa", "text": "hello"}),
    ("signal_send", {"agent": "Dialogue", "topic": "signal:done", "message_id": "1"}),
    ("signal_recv", {"agent": "Triage", "topic": "signal:done", "message_id": "1"}),
    ("log", {"level": "error", "component": "worker", "message": "hello"}),
    ("conversation.opened", {"title": "hello", "handler": "Dialogue"}),
    ("agent.handoff", {"from_agent": "Dialogue", "to_agent": "Triage", "reason": "hello"}),
    ("record.gap", {"reason": "trimmed", "why": "hello", "topic": "stream:c1", "lost": 3}),
    ("weather.alert", {"level": "orange", "words": "hello"}),
    ("tool_step", {"agent": "Dialogue", "name": "geo.locate", "args": {"place": "hello"}}),
]


def stored(seq=1, kind="message", principal="token:bus", run=None, turn=None, at=AT, **body):
    body.setdefault("type" if kind in ("message", "control") else "event", kind)
    return Stored("c1", seq, kind, at, principal, run, turn, None, json.dumps(body))


def draw(event, call=None):
    return str(EventRenderer("c1").draw(event, call).html)


def test_an_event_that_cannot_be_drawn_costs_itself_alone(monkeypatch):
    monkeypatch.setitem(event_rows.VIEWS, "log", lambda *_: 1 / 0)
    pen = EventRenderer("c1")

    failed, next_one = pen.draw(stored(7, "log", message="words")), pen.draw(stored(8, "weather"))

    assert 'data-seq="7"' in str(failed.html)
    assert "words" in str(failed.html)
    assert 'data-seq="8"' in str(next_one.html)


@pytest.mark.parametrize(("kind", "body"), KINDS)
def test_every_kind_is_one_element_with_its_facts(kind, body):
    html = draw(stored(7, kind, **body)).strip()
    seen = Seen(html)

    assert seen.faults == []
    assert html.startswith('<article class="event')
    assert html.endswith("</article>")
    assert html.count("<article") == 1
    assert f'id="e7" data-item data-seq="7" data-kind="{kind}"' in html
    assert 'href="?event=7#e7"' in html
    assert "hello" in seen.text or kind.startswith("signal")


@pytest.mark.parametrize("decision", decide.DECISIONS)
def test_a_run_that_continues_says_after_which_decision(decision):
    words = {"edit": "approved with edits", "reject": "rejected", "respond": "responded without running"}

    html = draw(stored(7, "run.resumed", reason=decision))

    assert f'<span class="faint">{words.get(decision, "approved")}</span>' in html


@pytest.mark.parametrize(("kind", "body"), [KINDS[0], *KINDS[2:4]])
def test_what_is_said_and_who_says_it_take_the_direction_of_their_own_letters(kind, body):
    html = draw(stored(7, kind, **body))

    for part in (r'<div class="said', r'<b class="name'):
        (tag,) = re.findall(f"{part}[^>]*>", html)
        assert 'dir="auto"' in tag


def test_message_names_sender_and_recipient():
    seen = Seen(draw(stored(sender="agent:Dialogue", recipient="user:Rosa", content="x")))

    assert "Dialogue" in seen.text
    assert "Rosa" in seen.text
    assert 'data-sender="agent:Dialogue"' in seen.html


def test_message_to_the_conversation_is_said_to_everybody():
    to_all = Seen(draw(stored(1, sender="agent:A", recipient="chat:c1", content="x")))
    elsewhere = Seen(draw(stored(2, sender="agent:A", recipient="chat:c2", content="x")))

    assert "everyone" in to_all.text
    assert "chat:c2" in elsewhere.text


def test_words_of_a_person_under_another_name_say_so():
    html = draw(
        stored(principal="user:maria", sender="agent:Dialogue", content="x", metadata={"reason": "it was late"})
    )

    assert 'data-by="maria"' in html
    assert "sent by maria" in Seen(html).text
    assert "Reason: it was late" in Seen(html).text


def test_person_speaking_as_themselves_is_an_operator_and_needs_no_badge():
    html = draw(stored(principal="user:maria", sender="user:maria", content="x"))

    assert "data-by" not in html
    assert 'data-kind="operator"' in html


def test_a_claim_of_being_an_operator_is_drawn_as_a_person():
    html = draw(stored(principal="token:x", sender="user:maria", content="x"))

    assert 'data-kind="operator"' not in html
    assert 'data-kind="person"' in html


@pytest.mark.parametrize(
    ("principal", "words"),
    [("bus:redis", "unverified sender"), ("token:ci", "via token ci"), ("import:maria", "imported")],
)
def test_principal_that_is_not_ours_is_told(principal, words):
    assert words in Seen(draw(stored(principal=principal, sender="agent:A", content="x"))).text


def test_demo_is_labelled():
    assert "demo" in Seen(draw(stored(principal="system", sender="agent:A", content="x", metadata={"demo": True}))).text


def test_senders_time_is_told_when_it_differs():
    near, far = "2026-11-21T22:02:05Z", "2026-11-21T20:00:00+00:00"

    assert "sent" not in Seen(draw(stored(sender="agent:A", content="x", created_at=near))).text
    assert "sent 20:00:00" in Seen(draw(stored(2, sender="agent:A", content="x", created_at=far))).text


def test_senders_time_is_read_in_its_own_zone():
    at_once, later = "2026-11-22T03:47:07+05:45", "2026-11-21T23:30:00+00:30"

    assert "sent" not in Seen(draw(stored(sender="agent:A", content="x", created_at=at_once))).text
    assert "sent 23:00:00" in Seen(draw(stored(2, sender="agent:A", content="x", created_at=later))).text


def test_imported_event_is_shown_at_the_time_it_first_happened():
    body = {"sender": "agent:A", "content": "x", "imported": {"principal": "system", "at": AT - 3_600_000_000}}
    html = draw(stored(principal="import:maria", **body))

    assert ">21:02:07</time>" in html
    assert "stored 21 Nov 2026, 22:02:07" in html


@pytest.mark.parametrize(
    "created", ["", "yesterday", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", 7, None, {}]
)
def test_wrong_time_of_a_sender_is_no_fault_of_ours(created):
    assert ">22:02:07</time>" in draw(stored(sender="agent:A", content="x", created_at=created))


def test_foreign_tokens_are_text_in_the_block_that_their_output_replaces():
    pen = EventRenderer("c1", preview_after=3)

    first = pen.draw(stored(4, "token", agent="A", text="Hel"))
    second = pen.draw(stored(5, "token", agent="A", text="lo\u202e"))
    output = pen.draw(stored(6, "output", agent="A", text="Hello"))
    after = pen.draw(stored(7, "token", agent="A", text="x"))

    assert (first.group, first.html, first.text) == ("stream:c1:3", None, "Hel")
    assert (second.text, second.opens) == ("lo[U+202E]", None)
    assert 'data-group="stream:c1:3"' in str(first.opens)
    assert "data-live-text" in str(first.opens)
    assert output.group == "stream:c1:3"
    assert "Hello" in str(output.html)
    assert after.group == "stream:c1:6"


def test_our_turns_are_groups_of_their_own():
    pen = EventRenderer("c1")

    token = pen.draw(stored(1, "token", "agent:A", "r1", 2, text="a"))
    output = pen.draw(stored(2, "output", "agent:A", "r1", 2, text="a"))

    assert token.group == output.group == "turn:r1:2"


def test_output_before_the_preview_takes_no_open_block():
    assert EventRenderer("c1", preview_after=9).draw(stored(5, "output", agent="A", text="x")).group is None


def test_open_turn_is_drawn_with_its_text_and_a_caret():
    token = stored(4, "token", agent="A", text="a")
    html = str(EventRenderer("c1").open_block("stream:c1:0", "a <b>\u200b", token))

    assert Seen(html).faults == []
    assert '<p class="writing" data-live-text>a &lt;b&gt;[U+200B]</p><span class="caret"' in html
    assert 'id="e4"' in html
    assert 'data-state="running"' in html


def test_tool_call_is_one_block_with_both_steps():
    called = stored(5, "tool_step", agent="A", name="geo.locate", args={"place": "Mill"}, tool_call_id="c7")
    finished = stored(6, "tool_step", agent="A", name="geo.locate", result_summary={"lat": 1.5}, status="success")
    call = CallEvents("x1", "done", 2, AT, 412.0, called, finished)
    pen = EventRenderer("c1")

    first, second = pen.draw(called, call), pen.draw(finished, call)

    assert first == second
    assert first.group == "call:x1"
    text = Seen(str(first.html)).text
    assert all(words in text for words in ("geo.locate", '"Mill"', "Lat", "1.5", "412 ms", "c7", "use 2", "Observed"))
    assert 'id="e5"' in str(first.html)
    assert 'id="e6"' in str(first.html)


@pytest.mark.parametrize(
    ("status", "state"),
    [("called", "running"), ("waiting", "waiting"), ("done", "done"), ("timeout", "failed"), ("blocked", "rejected")],
)
def test_state_of_a_call_is_an_attribute_and_a_word(status, state):
    event = stored(5, "tool_step", agent="A", name="t", args={})
    html = draw(event, CallEvents("x1", status, 1, AT, None, event, None))

    assert f'data-state="{state}" data-status="{status}"' in html


def test_arguments_that_came_escaped_are_read_in_their_own_letters_on_the_closed_line():
    escaped = draw(stored(1, "tool_step", name="refund", args={"اسم": "محمد"}))  # as json.dumps writes them
    no_json = draw(stored(2, "tool_step", name="refund", args_raw=r"\u0627 {"))

    assert "{&#34;اسم&#34;:&#34;محمد&#34;}</span>" in escaped
    assert r"\u0627 {</span>" in no_json


def test_falsy_result_is_a_result():
    event = stored(5, "tool_step", agent="A", name="t", args={}, output=0, status="success")

    assert "Result0" in Seen(draw(event, CallEvents("x1", "done", 1, AT, 1.0, event, event))).text.replace("\n", "")


def test_step_without_a_known_call_is_drawn_alone():
    html = draw(stored(5, "tool_step", name="t", result_summary="fine"))

    assert "data-group" not in html
    assert 'data-status="done"' in html
    assert "fine" in html


def test_object_as_text_is_drawn_as_fields_with_the_json_behind():
    html = draw(stored(1, "output", agent="A", text='{"due_date": "soon", "n": 1.50}'))

    assert '<dt title="due_date">Due date</dt><dd dir="auto">soon</dd>' in html
    assert "1.50" in Seen(html).text
    assert "<summary>Raw</summary>" in html


def test_object_after_words_is_drawn_as_json():
    html = draw(stored(sender="agent:A", content='Updated ledger:\n{\n  "done": {"answer": true}\n}\n'))

    assert "<p>Updated ledger:</p>" in html
    assert 'data-path="$.done.answer"' in html


def test_fields_a_kind_does_not_show_are_within_reach():
    html = draw(stored(sender="agent:A", content="x", metadata={"trace": "t9"}, mood="calm"))

    assert "Raw fields" in html
    assert '"t9"' in Seen(html).text
    assert '"calm"' in Seen(html).text


@pytest.mark.parametrize("kind", ["conversation.paused", "agent.handoff", "event.redacted", "run.failed"])
def test_a_field_that_a_row_shortens_is_whole_among_the_raw_fields(kind):
    html = draw(stored(1, kind, reason="A" * 3_000 + " the end", agent="A", to_agent="B", by="user:ada"))

    assert "Raw fields" in html
    assert "the end" in Seen(html.partition("Raw fields")[2]).text


@pytest.mark.parametrize("kind", ["conversation.paused", "event.redacted", "conversation.id_erased"])
@pytest.mark.parametrize(("principal", "by"), [("user:ada", None), ("system", "token:robot")])
def test_a_row_names_who_did_it(kind, principal, by):
    html = draw(stored(1, kind, principal, reason="why", new_id="n", events=[], **({"by": by} if by else {})))

    assert (by or principal).partition(":")[2] in Seen(html.partition("Raw fields")[0]).text


def test_long_message_starts_folded_without_a_script():
    html = draw(stored(sender="agent:A", content="line\n" * 100))

    assert '<details class="unfold"><summary data-label="Show all, about 101 lines"' in html
    assert "<details" not in draw(stored(2, sender="agent:A", content="short"))


@pytest.mark.parametrize("body", ["", "[1]", "{", '{"a":' * 200 + "1" + "}" * 200, '{"content":"\\ud800"}', "null"])
def test_body_that_cannot_be_read_is_drawn_as_it_is(body):
    for kind in ("message", "tool_step", "weather", "agent.handoff", "token"):
        event = Stored("c1", 1, kind, AT, "bus:redis", None, None, None, body)
        fragment = EventRenderer("c1").draw(event)

        assert Seen(str(fragment.html or fragment.opens)).faults == []


def test_body_that_is_no_object_keeps_its_text_in_sight():
    event = Stored("c1", 1, "message", AT, "bus:redis", None, None, None, '["said", "anyway"]')

    assert '"anyway"' in Seen(draw(event)).text


def test_drawing_is_kept_until_the_event_is_redacted():
    event = stored(sender="agent:A", content="secret")
    tombstone = event._replace(body='{"type":"message","sender":"agent:A"}')

    before, cached = draw(event), draw(tombstone)
    event_renderer.forget("c1", 1)

    assert "secret" in before
    assert cached == before
    assert "secret" not in draw(tombstone)


def test_redacted_result_is_dropped_with_its_call():
    called = stored(5, "tool_step", name="t", args={})
    finished = stored(6, "tool_step", name="t", output="secret")
    call = CallEvents("x1", "done", 1, AT, 1.0, called, finished)
    draw(called, call)

    event_renderer.forget("c1", 6)

    gone = call._replace(finished=finished._replace(body='{"event":"tool_step","name":"t"}'))
    assert "secret" not in draw(called, gone)


def test_a_failed_call_says_why_in_its_line():
    called = stored(5, "tool_step", agent="A", name="look_up", args={}, tool_call_id="c7")
    finished = stored(6, "tool_step", agent="A", name="look_up", status="error", error="Refused: <b>no</b>\nat line 3")
    call = CallEvents("x1", "failed", 1, AT, 5.0, called, finished)

    html = draw(called, call)

    assert '<span class="reason clip" dir="auto">Refused: &lt;b&gt;no&lt;/b&gt;</span>' in html
    assert 'class="reason' not in draw(called, call._replace(status="done"))


def test_a_model_call_of_telemetry_reads_as_a_turn_of_ours():
    assert "asked the model" in Seen(draw(stored(1, "model.call", agent="A", model="m"))).text
