"""What a client asked and was answered, as a transcript draws it. No database is used."""

import pytest

from conversations.rendering import event_renderer, response_rows
from tests.rendering.test_fragments_drawing import draw, stored
from tests.support.drawn_html import Seen
from tests.support.event_types import COMPLETED, RECEIVED

HOSTILE = "<img src=x onerror=alert(1)>\u202eevil\" onclick='x'"


def received(principal="token:robot", **more):
    event_renderer._cache.clear()
    return Seen(draw(stored(kind="response.received", principal=principal, **(RECEIVED | more))))


def completed(run="run-9", **more):
    event_renderer._cache.clear()
    return Seen(draw(stored(kind="response.completed", principal="agent:Dialogue", run=run, **(COMPLETED | more))))


def user(words):
    return {"type": "message", "role": "user", "content": words}


def test_a_request_says_who_asked_whom_for_what():
    seen = received()

    assert seen.faults == []
    for words in (
        "robot",
        "via token robot",
        "Dialogue",
        "Is Elm Street dry?",
        "requests a response from model",
        "must call rain",
    ):
        assert words in seen.text, words
    assert "only rain" in seen.text
    assert "temperature 0.5" in seen.text


def test_tools_are_told_with_who_runs_them():
    seen = received(tools=[{"type": "function", "name": "rain"}, {"type": "function", "name": "sun"}], hosted=["sun"])

    assert "rain external" in " ".join(seen.text.split())
    assert "sun hosted" in " ".join(seen.text.split())


def test_items_are_drawn_as_what_they_are():
    seen = received()

    assert "none since noon" in seen.text
    assert "output of call" in seen.text
    assert "acme:thought" in seen.text
    assert "earlier item" not in seen.text


def test_a_long_input_folds_and_has_an_end():
    seen = received(input=[user(f"number {n} here") for n in range(100)])

    assert "97 earlier items" in seen.text
    assert "number 99 here" in seen.text
    assert "number 59 here" not in seen.text.split("Request")[0]


def test_items_that_are_left_out_are_not_drawn_first(monkeypatch):
    """Clients send the whole history with each request: thousands of items."""
    drawn = []
    draw_item = response_rows._item
    monkeypatch.setattr(response_rows, "_item", lambda entry: drawn.append(entry) or draw_item(entry))

    seen = received(input=[user(f"**word** {n}") for n in range(2_000)])

    assert len(drawn) == response_rows.MAX_DRAWN
    assert "word 1999" in seen.text


def test_pictures_and_files_are_named_and_not_embedded():
    parts = [
        {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 5000},
        {"type": "input_image", "image_url": "https://elsewhere.example/a.png"},
        {"type": "input_file", "filename": "a.txt", "file_data": "aGk="},
    ]
    seen = received(input=[user(parts)])

    assert "5,022 characters of data" in seen.text
    assert "a.txt" in seen.text
    assert "<img" not in seen.html
    assert seen.links == []


def test_an_end_says_how_it_came_out():
    done = completed()
    failed = completed(status="failed", error={"code": "model_error", "message": "no more"}, usage=None, output=[])
    cut = completed(status="incomplete", incomplete_details={"reason": "max_output_tokens"})

    assert "responded to the client: completed" in done.text
    assert "1 call for the client" in done.text
    assert "12 tokens in, 4 out" in done.text
    assert "no more" in failed.text
    assert 'data-state="failed"' in failed.html
    assert "max_output_tokens" in cut.text
    for seen in (done, failed, cut):
        assert seen.faults == []


def test_a_claim_says_that_it_is_one():
    assert "from outside" in completed(run=None).text


@pytest.mark.parametrize(
    "wrong", [None, 3, "x", [], {}, [3, None, {}], [{"type": [], "content": {}, "role": {}}], HOSTILE]
)
def test_whatever_a_claim_holds_is_drawn(wrong):
    names = ("input", "tools", "hosted", "tool_choice", "allowed_tools", "params", "instructions", "model", "store")
    for name in (*names, "previous_response_id", "sender"):
        seen = received(**{name: wrong})
        assert seen.faults == [], name
        assert "onerror" not in seen.html.replace("&lt;img src=x onerror", ""), name
    for name in ("output", "error", "usage", "incomplete_details", "status", "response_id", "model"):
        assert completed(**{name: wrong}).faults == [], name
