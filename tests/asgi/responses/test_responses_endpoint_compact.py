"""`POST /v1/responses/compact`: one item for a whole conversation, taken as input again."""

import json

import pytest

from conversations.conversation import compaction
from conversations.models import Event
from tests.support import open_responses
from tests.support.open_responses import needs_document
from tests.support.response_desk import desk_open
from tests.support.stand_in import MODEL

PATH = "/v1/responses/compact"


@pytest.fixture
def desk(transactional_db):
    with desk_open() as opened:
        yield opened


def compacted(desk, **more):
    answer = desk.ask({"model": MODEL, **more}, PATH)
    assert answer.status == 200, answer.json
    return answer.json


def compacted_lines(item):
    return compaction.text_of(item).removeprefix(f"{compaction.OPENING}\n").split("\n")


@needs_document
def test_a_chain_becomes_one_item_that_is_input_again(desk):
    rain = {"type": "function", "name": "rain"}
    first = desk.create('call rain {"street": "Elm"}', tools=[rain]).json
    output = {"type": "function_call_output", "call_id": "call_1", "output": "none"}
    second = desk.create([output], previous_response_id=first["id"]).json

    made = compacted(desk, previous_response_id=second["id"], input="and Oak?")

    open_responses.check("CompactResource", made)
    (item,) = made["output"]
    assert compacted_lines(item) == [
        'user: call rain {"street": "Elm"}',
        "assistant: Let me see.",
        'called rain: {"street": "Elm"}',
        "output: none",
        "assistant: You said: none",
        "user: and Oak?",
    ]
    again = desk.create([item, {"role": "user", "content": "go on"}]).json
    assert again["status"] == "completed"
    received = json.loads(Event.objects.filter(kind="response.received").latest("id").body)
    assert received["input"][0] == item
    assert (
        compacted_lines(compacted(desk, input=[item, {"role": "user", "content": "x"}])["output"][0])[-1] == "user: x"
    )


def test_the_same_request_has_the_same_output(desk):
    first, two = (compacted(desk, input="hello") for _ in range(2))

    assert first["output"] == two["output"]
    assert first["id"] != two["id"]


def test_long_conversations_keep_their_newest_words():
    items = [{"type": "message", "role": "user", "content": f"{n} " + "x" * 5000} for n in range(40)]

    text = compaction.text_of(compaction.item_of(items))

    assert text is not None
    assert len(text) <= compaction.WHOLE + 100
    assert "39 xx" in text
    assert "user: 1 xx" not in text


def test_a_changed_or_foreign_item_is_nobodys():
    item = compaction.item_of([{"type": "message", "role": "user", "content": "hello"}])

    for wrong in (item["encrypted_content"][:-1], "x" + item["encrypted_content"], "", "gAAAA", None, 3):
        assert compaction.text_of(item | {"encrypted_content": wrong}) is None


def test_wrong_requests_are_refused(desk):
    unstored = desk.create("hello", store=False).json["id"]
    for more, param in (
        ({"previous_response_id": unstored}, "previous_response_id"),
        ({}, "input"),
        ({"input": 3}, "input"),
        ({"input": "x", "model": "nobody"}, "model"),
    ):
        answer = desk.ask({"model": MODEL, **more}, PATH)
        assert answer.status in (400, 404)
        assert answer.json["error"]["param"] == param
