"""`POST /v1/responses`: what is asked, stored and answered, as JSON and as a stream of events."""

import json

import pytest

from conversations.core.database_clock import database_now
from conversations.models import Agent, Conversation, Event, Response, Run
from tests.support import open_responses, stand_in
from tests.support.open_responses import needs_document
from tests.support.stand_in import MODEL

pytestmark = pytest.mark.django_db(transaction=True)
TERMINAL = ("response.completed", "response.failed", "response.incomplete")
RAIN = {"type": "function", "name": "rain", "parameters": {"type": "object", "properties": {"street": {}}}}


def text_of(response):
    return "".join(p["text"] for item in response["output"] for p in item.get("content", ()) if "text" in p)


def stored_bodies(kind, **where):
    events = Event.objects.filter(kind=kind, **where).order_by("id")
    return [json.loads(body) for body in events.values_list("body", flat=True)]


def test_a_response_is_asked_for_stored_and_answered(desk):
    answer = desk.create("Is Elm Street dry?", metadata={"desk": "4"}, temperature=0.5)

    response = answer.json
    assert (answer.status, response["status"], text_of(response)) == (200, "completed", "You said: Is Elm Street dry?")
    assert (response["model"], response["temperature"], response["metadata"]) == ("stand-in-1", 0.5, {"desk": "4"})
    assert response["usage"]["total_tokens"] == 19
    assert answer.headers["x-conversation-id"] == response["id"]
    row = Response.objects.get()
    kinds = list(Event.objects.filter(conversation=row.conversation).order_by("seq").values_list("kind", flat=True))
    assert kinds[:4] == ["conversation.opened", "response.received", "run.queued", "run.started"]
    assert (row.id, row.in_seq, row.status, row.previous) == (response["id"], 2, "completed", None)
    assert kinds[row.out_seq - 1 :] == ["response.completed", "run.done"]
    received = Event.objects.get(kind="response.received")
    assert received.principal == "token:asker-operator"
    assert json.loads(received.body)["params"] == {"temperature": 0.5, "metadata": {"desk": "4"}}


def test_a_stream_tells_what_the_stored_response_says(desk):
    events = desk.stream("two words and more")

    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds[:4] == ["created", "in_progress", "output_item.added", "content_part.added"]
    assert kinds[-4:] == ["output_text.done", "content_part.done", "output_item.done", "completed"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    final = events[-1]["response"]
    stored = stored_bodies("response.completed")[0]
    assert final["output"] == stored["output"]
    assert replayed(events) == final["output"]


def replayed(events):
    """Put the items together from their deltas, as a client does; the done events have to say the same."""
    items, texts = {}, {}
    for event in events:
        kind, at = event["type"], event.get("output_index")
        if kind == "response.output_item.added":
            items[at] = event["item"]
        elif kind.endswith(".delta"):
            texts[at] = texts.get(at, "") + event["delta"]
        elif kind in ("response.output_text.done", "response.function_call_arguments.done", "response.refusal.done"):
            whole = event.get("text", event.get("arguments", event.get("refusal")))
            assert texts.get(at, "") == whole, event
        elif kind == "response.output_item.done":
            assert event["item"]["id"] == items[at]["id"]
            items[at] = event["item"]
    return [items[at] for at in sorted(items)]


MATRIX = {
    "plain": {"input": "hello"},
    "items": {"input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]},
    "instructions": {"input": "hello", "instructions": "Be brief.", "store": False},
    "everything": {
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "hello"},
                    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
                    {"type": "input_file", "filename": "a.txt", "file_data": "aGk="},
                ],
            },
            {"type": "reasoning", "id": "rs_0", "summary": [{"type": "summary_text", "text": "hm"}]},
            {
                "type": "message",
                "role": "assistant",
                "id": "msg_0",
                "status": "completed",
                "phase": "final_answer",
                "content": [{"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []}],
            },
            {"type": "function_call", "call_id": "c0", "name": "rain", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c0", "output": "none"},
            {"type": "acme:note", "id": "n1", "status": "completed"},
            {"type": "message", "role": "user", "content": "and now?"},
        ],
        "tools": [RAIN | {"description": "Rain", "strict": True}, {"type": "acme:look_up"}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "rain"}]},
        "temperature": 0,
        "top_p": 0.3,
        "presence_penalty": -1,
        "frequency_penalty": 1.5,
        "top_logprobs": 3,
        "max_output_tokens": 16,
        "max_tool_calls": 1,
        "parallel_tool_calls": False,
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}}, "verbosity": "low"},
        "reasoning": {"effort": "high", "summary": "auto"},
        "truncation": "auto",
        "service_tier": "flex",
        "metadata": {"a": "b"},
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "include": ["reasoning.encrypted_content"],
        "stream_options": {"include_obfuscation": False},
    },
    "nulls": dict.fromkeys(
        ["tools", "tool_choice", "metadata", "text", "temperature", "reasoning", "store", "top_logprobs", "truncation"]
    )
    | {"input": "hello"},
    "required": {"input": "hello", "tools": [RAIN], "tool_choice": "required"},
    "one function": {"input": "hello", "tools": [RAIN], "tool_choice": {"type": "function", "name": "rain"}},
    "nested function": {
        "input": "hello",
        "tools": [{"type": "function", "function": {"name": "rain", "parameters": {}}}],
        "tool_choice": {"type": "function", "function": {"name": "rain"}},
    },
    "list of allowed": {"input": "hello", "tools": [RAIN], "allowed_tools": ["rain"], "tool_choice": "required"},
    "call": {"input": 'call rain {"street": "Elm"}', "tools": [RAIN]},
    "calls": {"input": "calls", "tools": [RAIN]},
    "two turns": {"input": "two"},
    "hosted": {"input": "hosted"},
    "failed": {"input": "fail"},
    "vanished": {"input": "vanish"},
    "incomplete": {"input": "cut"},
    "cancelled": {"input": "cancel"},
    "reasoning": {"input": "think"},
    "refusal": {"input": "refuse"},
    "unstreamed": {"input": "unstreamed"},
    "silent": {"input": "silent"},
    "json object": {"input": "hello", "text": {"format": {"type": "json_object"}}},
    "empty strings": {"input": [{"role": "user", "content": ""}], "instructions": ""},
    "right to left": {"input": "שלום \u202e عالم 👩‍👩‍👧‍👦 \u0000"},
}


@pytest.mark.slow
@needs_document
def test_every_answer_and_event_is_as_the_document_says(desk):
    for name, parameters in MATRIX.items():
        whole = desk.ask({"model": MODEL, **parameters})
        assert whole.status == 200, (name, whole.json)
        open_responses.check_response(whole.json)
        streamed = desk.ask({"model": MODEL, **parameters, "stream": True})
        assert streamed.writes[-1] == b"data: [DONE]\n\n", name
        events = streamed.events
        for event in events:
            open_responses.check_event(event)
        assert [event["sequence_number"] for event in events] == list(range(len(events))), name
        assert events[-1]["type"] in TERMINAL, name
        final = events[-1]["response"]
        own_fields = ("id", "created_at", "completed_at", "output")
        assert {k: v for k, v in final.items() if k not in own_fields} == {
            k: v for k, v in whole.json.items() if k not in own_fields
        }, name
        if final["status"] != "failed":
            assert replayed(events) == final["output"], name


def test_a_response_states_the_tier_and_the_log_probabilities_that_it_has(desk):
    answer = desk.create(service_tier="priority", top_logprobs=3).json

    assert (answer["service_tier"], answer["top_logprobs"]) == ("default", 0)


@pytest.mark.parametrize(
    ("word", "status", "code"),
    [("fail", "failed", "model_error"), ("vanish", "failed", "server_error"), ("cancel", "failed", "cancelled")],
)
def test_a_run_that_ends_badly_is_a_failed_response(desk, word, status, code):
    events = desk.stream(word)

    assert events[-1]["type"] == f"response.{status}"
    assert (events[-1]["response"]["status"], events[-1]["response"]["error"]["code"]) == (status, code)
    opened = [e["item"]["id"] for e in events if e["type"] == "response.output_item.added"]
    assert opened == [e["item"]["id"] for e in events if e["type"] == "response.output_item.done"]
    assert desk.create(word).json["status"] == status


def test_an_answer_cut_short_is_incomplete_and_says_why(desk):
    final = desk.stream("cut")[-1]

    assert final["type"] == "response.incomplete"
    assert final["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert final["response"]["output"][-1]["status"] == "incomplete"
    assert desk.create("and?", previous_response_id=final["response"]["id"]).status == 200


def test_what_a_hosted_tool_does_is_not_told_to_the_client(desk):
    events = desk.stream("hosted")

    assert not any("look_up" in json.dumps(event) for event in events)
    assert len(stored_bodies("tool_step")) == 2


def test_a_call_comes_back_and_its_output_goes_on(desk):
    first = desk.create('call rain {"street": "Elm"}', tools=[RAIN]).json
    call = first["output"][-1]
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("function_call", "rain", {"street": "Elm"})

    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "none since noon"}
    second = desk.create([output], previous_response_id=first["id"])

    assert second.json["previous_response_id"] == first["id"]
    assert text_of(second.json) == "You said: none since noon"
    assert Conversation.objects.get().key == first["id"]


def test_a_response_continued_twice_is_a_fork(desk):
    first = desk.create("hello").json
    first_answer, two = (desk.create(word, previous_response_id=first["id"]) for word in ("one", "two words"))

    assert first_answer.headers["x-conversation-id"] == first["id"]
    assert two.headers["x-conversation-id"] == two.json["id"]
    fork = Conversation.objects.get(key=two.json["id"])
    row = Response.objects.get(id=first["id"])
    assert (fork.parent, fork.forked_at) == (row.conversation, row.out_seq)
    assert desk.create("on", previous_response_id=two.json["id"]).headers["x-conversation-id"] == fork.key


def test_a_continuation_that_failed_may_be_tried_again_in_its_place(desk):
    first = desk.create("hello").json
    desk.create("fail", previous_response_id=first["id"])
    desk.create("vanish", previous_response_id=first["id"])

    again = desk.create("again", previous_response_id=first["id"])

    assert again.headers["x-conversation-id"] == first["id"]


def test_the_client_may_name_the_conversation(desk):
    for words in ("one", "two"):
        answer = desk.create(words, metadata={"conversation_id": "town/hall ü"})
        assert answer.headers["x-conversation-id"] == "town%2Fhall%20%C3%BC"

    conversation = Conversation.objects.get()
    assert (conversation.key, conversation.title) == ("town/hall ü", "one")
    assert conversation.participants.get(name=f"agent:{MODEL}").is_named


def test_what_cannot_be_continued_is_not_found(desk):
    unstored = desk.create("hello", store=False).json["id"]
    failed = desk.create("fail").json["id"]

    for previous in (unstored, failed, "resp_" + "0" * 32, "resp_1", "", "\u0000", "🙂" * 500):
        answer = desk.create("on", previous_response_id=previous)
        assert answer.status == 400, previous
        error = answer.json["error"]
        assert (error["type"], error["code"]) == ("invalid_request", "previous_response_not_found")
        assert error["param"] == "previous_response_id"


def test_models_are_the_agents_that_are_served_and_plain_ones(desk):
    assert desk.create(model="demo").json["status"] == "completed"
    assert Run.objects.latest("id").agent == "Plain model"
    for model in ("gpt-9", "Plain model", "\u0000", "x" * 200):
        answer = desk.create(model=model)
        assert (answer.status, answer.json["error"]["code"]) == (404, "model_not_found"), model
        assert answer.json["error"]["type"] == "not_found"
    stand_in.register(is_plain_demo=False)
    assert desk.create(model="gpt-9").json["status"] == "completed"
    Agent.objects.filter(name=MODEL).update(served_until=1)
    assert desk.create(model=MODEL).status == 200  # a name like any other, for the plain model


def test_a_model_whose_worker_is_away_is_asked_for_again_later(desk):
    moments_ago = database_now() - 1
    Agent.objects.filter(name=MODEL).update(served_until=moments_ago)
    agent_away = desk.create(model=MODEL)
    Agent.objects.filter(name="Plain model").update(served_until=1)
    nobody_here = desk.create(model="gpt-9")

    for answer in (agent_away, nobody_here):
        assert (answer.status, answer.json["error"]["code"]) == (503, "model_unavailable")
        assert answer.headers["retry-after"] == "1"
