"""What a request goes on from: a conversation by its id, the calls it has outputs of, and long chains."""

import json
import threading

import openai
import pytest
from django.db import connection, transaction

from conversations.access.accounts import tokens
from conversations.core.principals import SYSTEM, token_principal
from conversations.core.write_transaction import lock_actions
from conversations.events import log
from conversations.events.log import bounded_reads
from conversations.events.response_ids import ResponseRequest
from conversations.models import Conversation, Event, Response, Run, ToolCall
from conversations.runs.responses import create as asking
from conversations.runs.responses import response_chain
from tests.events.test_log import message_event
from tests.support import stand_in
from tests.support.live import until
from tests.support.responses_served import served_desk
from tests.support.stand_in import MODEL

pytestmark = pytest.mark.django_db(transaction=True)
RAIN = {"type": "function", "name": "rain"}
SCHEMA = {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]}


def message_texts(response):
    """List the words of a chain's messages."""
    items = response_chain.of(response).items
    return [part["text"] for item in items if item["type"] == "message" for part in item["content"]]


def output(call_id="call_1"):
    return {"type": "function_call_output", "call_id": call_id, "output": "dry"}


def test_the_official_client_is_remembered_by_its_conversation(transactional_db):
    with (
        served_desk() as served,
        openai.OpenAI(base_url=served.url, api_key=served.desk.token, max_retries=0, timeout=60) as client,
    ):
        first = client.responses.create(model=MODEL, input="one", conversation="conv_42")
        second = client.responses.create(model=MODEL, input="again", conversation={"id": "conv_42"})

    assert first.conversation.id == second.conversation.id == "conv_42"
    assert second.previous_response_id is None
    assert message_texts(second.id) == ["one", "You said: one", "again", "You said: again"]
    assert Conversation.objects.get().key == "conv_42"


def test_what_waits_for_its_turn_remembers_what_it_waits_for(desk):
    where = {"conversation": "busy"}
    desk.create("hold", background=True, **where)
    until(lambda: Run.objects.filter(status="running").exists())
    second = desk.create("next", background=True, **where).json["id"]
    stand_in.RELEASED.set()
    until(lambda: desk.get(f"responses/{second}").json["status"] == "completed")

    assert message_texts(second) == ["hold", "Holding on", "next", "You said: next"]


def test_what_failed_or_was_not_to_be_stored_is_not_remembered(desk):
    for words, more in (("one", {}), ("fail", {}), ("two", {"store": False})):
        desk.create(words, conversation="c", **more)

    assert message_texts(desk.create("three", conversation="c").json["id"])[:3] == ["one", "You said: one", "three"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"conversation": ""}, "conversation"),
        ({"conversation": "x" * 201}, "conversation"),
        ({"conversation": {"name": "x"}}, "conversation"),
        ({"conversation": 3}, "conversation"),
        ({"conversation": "a", "metadata": {"conversation_id": "b"}}, "conversation"),
        ({"conversation": "a", "previous_response_id": f"resp_{'0' * 32}"}, "conversation"),
        ({"background": True, "store": False}, "background"),
    ],
)
def test_two_words_about_where_it_belongs_are_refused(desk, more, field):
    answer = desk.create(**more)

    assert (answer.status, answer.json["error"]["param"]) == (400, field)
    assert not Response.objects.exists()


def test_the_output_of_an_unknown_call_is_refused_naming_the_item(desk):
    called = desk.create("call rain {}", tools=[RAIN]).json["id"]
    done = desk.create([output()], previous_response_id=called).json["id"]
    ToolCall.objects.update(status="done")  # as a worker does once it has the output
    own = [{"type": "function_call", "call_id": "c9", "name": "rain", "arguments": "{}"}, output("c9")]
    for items, previous, field in (
        ([output()], None, "input[0].call_id"),
        ([output("call_2")], called, "input[0].call_id"),
        ([{"role": "user", "content": "x"}, output()], done, "input[1].call_id"),
        ([*own, output("c9")], None, "input[2].call_id"),
        ([own[1], own[0]], None, "input[0].call_id"),
    ):
        answer = desk.create(items, previous_response_id=previous)
        assert (answer.status, answer.json["error"]["param"]) == (400, field)
        assert answer.json["error"]["code"] == "tool_call_not_found"
    before = Response.objects.count()

    for items, previous in ((own, None), ([output()], called), (own, called)):
        assert desk.create(items, previous_response_id=previous).json["status"] == "completed"
    assert Response.objects.count() == before + 3


def test_the_schema_of_an_answer_is_echoed(desk):
    form = {"type": "json_schema", "name": "rain", "schema": SCHEMA, "strict": True, "description": None}

    assert desk.create(text={"format": form}).json["text"]["format"] == form


@pytest.mark.slow
def test_of_a_long_chain_the_newest_bytes_are_read(desk, monkeypatch):
    monkeypatch.setattr(bounded_reads, "READ_BYTES", 100_000)
    previous = None
    for n in range(8):
        previous = desk.create(f"{n} {'x' * 20_000}", previous_response_id=previous).json["id"]

    chain = response_chain.of(previous)

    read = sum(len(json.dumps(item)) for item in chain.items)
    assert not chain.is_whole
    assert 60_000 < read < 150_000
    assert message_texts(previous)[-1].startswith("You said: 7 ")
    compacted = desk.ask({"model": MODEL, "previous_response_id": previous}, "/v1/responses/compact")
    assert compacted.status == 200


needs_postgresql = pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has one writer at a time")


def in_thread(work):
    """Do it in a thread with a connection of its own."""

    def lent():
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=lent)
    thread.start()
    return thread


@needs_postgresql
def test_responses_go_on_beside_each_other_and_a_revocation_waits_for_them(desk):
    by = token_principal("asker-operator")
    response_request = ResponseRequest(model=MODEL, input=[{"type": "message", "role": "user", "content": "hi"}])
    with transaction.atomic():
        lock_actions(is_shared=True)
        beside = in_thread(lambda: asking.receive(by, response_request))
        beside.join(60)
        assert not beside.is_alive(), "a response waited for another one"
        revoking = in_thread(lambda: tokens.revoke_token(SYSTEM, "asker-operator"))
        until(_somebody_waits, what="the revocation to wait")
    revoking.join(60)

    assert not revoking.is_alive()
    assert Response.objects.count() == 1


def test_a_conversation_that_somebody_begins_meanwhile_leaves_a_run_its_own_input(desk, monkeypatch):
    with_events = asking._with_events

    def beside(*facts):
        monkeypatch.undo()
        made = with_events(*facts)
        log.append([message_event("conv_42")])
        return made

    monkeypatch.setattr(asking, "_with_events", beside)
    words = [{"type": "message", "role": "user", "content": "hi"}]

    asking.receive(token_principal("asker-operator"), ResponseRequest(model=MODEL, input=words, conversation="conv_42"))

    run = Run.objects.get()
    assert Event.objects.get(conversation=run.conversation_id, seq=run.input_seq).kind == "response.received"


@needs_postgresql
def test_of_two_that_go_on_from_one_response_at_once_one_is_a_fork(desk):
    first = desk.create("one").json["id"]
    at_once = threading.Barrier(8)
    response_request = ResponseRequest(
        model=MODEL, input=[{"type": "message", "role": "user", "content": "on"}], previous_response_id=first
    )

    def go_on():
        at_once.wait(60)
        asking.receive(token_principal("asker-operator"), response_request)

    for thread in [in_thread(go_on) for _ in range(8)]:
        thread.join(60)

    places = list(Response.objects.filter(previous=first).values_list("conversation__key", flat=True))
    assert len(places) == 8
    assert len(set(places)) == 8


def _somebody_waits():
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype='advisory' AND NOT granted")
        return cursor.fetchone()[0]
