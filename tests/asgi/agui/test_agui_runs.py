"""`POST /api/v1/agui/agents/{agent}`: what a front end sends, what it is streamed, what goes on from it."""

import json

import pytest
from ag_ui.core import AssistantMessage, Context, EventType, FunctionCall, Tool, ToolCall, ToolMessage, UserMessage

from conversations.models import Conversation, Event, Response, Run
from tests.support.agui import AGENT, agui_open, input_of, kinds, text_of

RAIN = Tool(name="rain", description="Tell the rain.", parameters={"type": "object", "properties": {}})
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(transactional_db):
    with agui_open() as served:
        yield served


def test_a_run_is_streamed_from_its_start_to_its_end(desk):
    events = desk.play("agui-first", "hello there")

    first, last = events[0], events[-1]
    assert (first.type, first.thread_id, first.run_id) == (EventType.RUN_STARTED, "agui-first", "front-run-1")
    assert first.protocol_version == "1.0"
    assert (last.type, last.outcome.type) == (EventType.RUN_FINISHED, "success")
    assert kinds(events).count("TEXT_MESSAGE_START") == kinds(events).count("TEXT_MESSAGE_END") == 1
    assert text_of(events) == "You said: hello there"
    assert Conversation.objects.get().key == "agui-first"
    assert Run.objects.get().id == first.metadata["switchboard"]["run_id"]


def history_of(events):
    """Return the messages that a front end makes of a stream, as the public clients do."""
    messages = {}
    for event in events:
        match event.type:
            case EventType.TEXT_MESSAGE_START:
                messages[event.message_id] = AssistantMessage(id=event.message_id, content="")
            case EventType.TEXT_MESSAGE_CONTENT:
                messages[event.message_id].content += event.delta
            case EventType.TOOL_CALL_START:
                parent = event.parent_message_id or event.tool_call_id
                message = messages.setdefault(parent, AssistantMessage(id=parent))
                made = FunctionCall(name=event.tool_call_name, arguments="")
                message.tool_calls = [*(message.tool_calls or []), ToolCall(id=event.tool_call_id, function=made)]
            case EventType.TOOL_CALL_ARGS:
                (call,) = [
                    call
                    for message in messages.values()
                    for call in getattr(message, "tool_calls", None) or ()
                    if call.id == event.tool_call_id
                ]
                call.function.arguments += event.delta
            case EventType.TOOL_CALL_RESULT:
                messages[event.message_id] = ToolMessage(
                    id=event.message_id, tool_call_id=event.tool_call_id, content=event.content
                )
    return list(messages.values())


def test_a_history_that_was_told_is_recorded_once(desk):
    messages = [UserMessage(id="u1", content="one")]
    messages += history_of(desk.play("agui-again", *messages))
    messages += [UserMessage(id="u2", content="and then")]

    events = desk.play("agui-again", *messages, run="front-run-2")

    assert text_of(events) == "You said: and then"
    first, second = Response.objects.order_by("in_seq")
    assert second.previous == first.id
    requests = [
        json.loads(body)
        for body in Event.objects.filter(kind="response.received").order_by("id").values_list("body", flat=True)
    ]
    assert [len(body["input"]) for body in requests] == [1, 1]


def test_a_history_that_nobody_here_knows_is_a_beginning_of_its_own(desk):
    desk.play("agui-other", "one")

    desk.play("agui-other", "zero", AssistantMessage(id="elsewhere-1", content="naught"), "two", run="front-run-2")

    second = Response.objects.order_by("in_seq").last()
    assert second.previous is None
    body = json.loads(Event.objects.filter(kind="response.received").order_by("seq").last().body)
    assert [item["role"] for item in body["input"]] == ["user", "assistant", "user"]


def test_the_front_end_answers_a_call_of_its_own_tool(desk):
    messages = [UserMessage(id="u1", content='call rain {"street": "Elm"}')]

    events = desk.play("agui-tool", *messages, tools=[RAIN])

    (start,) = [event for event in events if event.type == EventType.TOOL_CALL_START]
    assert start.tool_call_name == "rain"
    assert events[-1].outcome.pending_tool_call_ids == [start.tool_call_id]
    assert EventType.TOOL_CALL_RESULT not in {event.type for event in events}
    made = history_of(events)
    assert json.loads(made[-1].tool_calls[0].function.arguments) == {"street": "Elm"}
    messages += [*made, ToolMessage(id="t1", tool_call_id=start.tool_call_id, content="none since noon")]

    on = desk.play("agui-tool", *messages, tools=[RAIN], run="front-run-2")

    assert text_of(on) == "You said: none since noon"
    first, second = Response.objects.order_by("in_seq")
    assert second.previous == first.id


def test_a_call_that_runs_here_is_told_with_its_result(desk):
    events = desk.play("agui-hosted", "hosted tool")

    at = kinds(events).index("TOOL_CALL_START")
    assert kinds(events)[at : at + 4] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    assert events[at].tool_call_id == events[at + 3].tool_call_id
    assert events[at + 3].content == "dry"
    assert events[-1].outcome.pending_tool_call_ids is None


@pytest.mark.parametrize(("words", "code"), [("fail now", "error"), ("vanish now", "the worker stumbled")])
def test_a_run_that_fails_ends_with_an_error(desk, words, code):
    events = desk.play(f"agui-{words[:4]}", words)

    assert (events[-1].type, events[-1].code) == (EventType.RUN_ERROR, code)


def test_a_run_that_was_stopped_is_no_success(desk):
    assert desk.play("agui-stopped", "cancel it")[-1].outcome.type == "cancelled"


def test_what_was_only_stored_is_streamed_too(desk):
    assert text_of(desk.play("agui-stored", "unstreamed words")) == "Only stored."


def test_what_the_front_end_knows_is_given_to_the_model(desk):
    desk.play("agui-context", "hi", context=[Context(description="Page", value="Basket")], state={"items": 2})

    body = json.loads(Event.objects.get(kind="response.received").body)
    assert body["instructions"] == 'Page: Basket\nState of the application: {"items": 2}'


def test_secrets_are_masked_before_anything_is_kept(desk):
    desk.play("agui-secret", "my key is sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD")

    assert "abcdefghijklmnop" not in Event.objects.get(kind="response.received").body


WRONG = [
    ({"threadId": "agui-x", "runId": "r", "messages": []}, "messages"),
    ({"threadId": "", "runId": "r", "messages": []}, "threadId"),
    ({"threadId": "x" * 201, "runId": "r", "messages": []}, "threadId"),
    ({"threadId": "agui-x", "runId": "r"}, "messages"),
    (
        {"threadId": "agui-x", "runId": "r", "messages": [{"id": "1", "role": "user", "content": 7}]},
        "messages[0].content",
    ),
    ({"threadId": "agui-x", "runId": "r", "messages": [{"id": "1", "role": "nobody"}]}, "messages[0]"),
    ({"threadId": "agui-x", "runId": "r", "messages": [], "tools": [{"name": 1, "description": ""}]}, "tools[0].name"),
]


@pytest.mark.parametrize("at", range(len(WRONG)))
def test_a_wrong_input_is_refused_before_there_is_a_stream(desk, at):
    body, field = WRONG[at]

    answer = desk.post(body)

    assert answer.status == 400
    assert answer.json["error"]["field"].startswith(field)
    assert not Run.objects.exists()


def test_a_tool_whose_name_no_model_takes_is_refused(desk):
    tool = Tool(name="not a name", description="")

    answer = desk.post(input_of("agui-x", "hi", tools=[tool]))

    assert (answer.status, answer.json["error"]["field"]) == (400, "tools[0].name")


@pytest.mark.parametrize(
    "body", [b"[" * (1 << 20), b'{"messages":' * 80_000, b"", b"null", b'{"a":1', b"\xff\xfe", b"7"]
)
def test_hostile_bodies_are_refused(desk, body):
    assert desk.post(body).status in (400, 413)


def test_who_may_not_ask_is_told_so_by_a_status(desk):
    assert desk.post(input_of("agui-x", "hi"), headers={}).status == 401
    assert desk.post(input_of("agui-x", "hi"), "/api/v1/agui/agents/Nobody").status == 404
    assert desk.post(input_of("agui-x", "hi"), "/api/v1/agui/nothing").status == 404
    assert desk.post(b"", AGENT, method="GET").status == 405
