"""Event → HTML: what repeats an earlier event is a line, not a second message. No database is used."""

import re

import pytest

from conversations.events.projections import ECHO_WITHIN
from conversations.rendering import outline_rows, transcript_text
from conversations.rendering.event_renderer import EventRenderer
from tests.rendering.test_fragments_drawing import draw, stored
from tests.support.drawn_html import Seen


def test_envelope_that_repeats_the_output_before_it_is_one_line():
    pen = EventRenderer("c1")
    pen.draw(stored(1, "output", agent="A", text="Hello"))

    html = str(pen.draw(stored(2, sender="agent:A", recipient="chat:c1", content="Hello")).html)

    assert 'class="event line"' in html
    assert 'data-level="all"' in html


@pytest.mark.parametrize(
    ("seq", "sender", "content"), [(3, "agent:A", "Hello"), (2, "agent:B", "Hello"), (2, "agent:A", "Hello!")]
)
def test_envelope_that_only_resembles_it_is_not(seq, sender, content):
    pen = EventRenderer("c1", before=[stored(1, "output", agent="A", text="Hello")])

    assert "line" not in str(pen.draw(stored(seq, sender=sender, content=content)).html).split('"')[1]


def test_envelope_that_names_an_output_keeps_its_words_within_reach():
    html = draw(stored(sender="agent:A", content="something else", metadata={"output_id": "o1"}))

    assert 'data-level="chat"' in html
    assert "something else" in Seen(html).text


def drawn_in_order(*events):
    pen = EventRenderer("c1")
    return [str(pen.draw(event).html) for event in events]


@pytest.mark.parametrize(
    ("seq", "body", "level"),
    [
        (2, {"sender": "user:rosa", "text": "hello"}, "all"),
        (ECHO_WITHIN + 2, {"sender": "user:rosa", "text": "hello"}, "chat"),
        (2, {"sender": "user:otto", "text": "hello"}, "chat"),
        (2, {"sender": "user:rosa", "text": "other words"}, "chat"),
        (2, {"sender": "user:rosa", "text": ""}, "chat"),
    ],
)
def test_what_a_stream_tells_of_the_message_before_is_a_line(seq, body, level):
    message = stored(1, "message", sender="user:rosa", recipient="agent:Desk", content=body["text"] and "hello")

    _, drawn = drawn_in_order(message, stored(seq, "user_message", **body))

    assert f'data-level="{level}"' in drawn
    assert ("on the stream as well" in drawn) == (level == "all")


TYPED = {"sender": "user:rosa", "text": "hello"}
LATE_ECHO = [
    stored(1, "message", sender="user:rosa", recipient="agent:Desk", content="hello"),
    stored(2, "tool_step", name="look", tool_call_id="c1", status="start", agent="Desk"),
    stored(3, "message", sender="agent:Desk", recipient="user:rosa", content="hello"),
    stored(4, "user_message", **TYPED),
    stored(5, "user_message", **TYPED),  # said once more
]
LEVELS_OF_ECHO = ["chat", "steps", "chat", "all", "chat"]


def test_what_a_stream_tells_after_the_first_steps_is_a_line_and_told_again_it_is_not():
    drawn = [re.search(r'data-level="(\w+)"', html)[1] for html in drawn_in_order(*LATE_ECHO)]

    assert drawn == LEVELS_OF_ECHO


def test_a_page_and_a_feed_that_begin_behind_the_message_know_what_it_said():
    for first in (2, 3):
        pen = EventRenderer("c1", before=LATE_ECHO[:first])
        drawn = [str(pen.draw(event).html) for event in LATE_ECHO[first:]]
        levels = [re.search(r'data-level="(\w+)"', html)[1] for html in drawn]
        assert levels == LEVELS_OF_ECHO[first:]


def test_outline_and_text_tell_it_once():
    events = [event for event in LATE_ECHO if event.kind != "tool_step"]
    assert [row.seq for row in outline_rows.rows_of(events)] == [1, 5]

    text = "".join(transcript_text.pieces("", "c1", 5, LATE_ECHO, "text"))
    assert text.count("    hello") == 3
