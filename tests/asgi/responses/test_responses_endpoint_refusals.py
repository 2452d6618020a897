"""What the responses door does not take: wrong fields, wrong shapes, wrong bearers, too much; never with a 500, and no
secret is kept."""

import json

import pytest

from conversations.access.accounts import tokens
from conversations.access.audit import refusal_counter
from conversations.asgi.responses import parse_request, request_schema, tools_and_choice
from conversations.core.errors import Invalid, TooLarge
from conversations.core.json_values import Converter
from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry, Event
from tests.support import open_responses
from tests.support.open_responses import needs_document
from tests.support.response_desk import Desk, desk_open
from tests.support.stand_in import MODEL

RAIN = {"type": "function", "name": "rain"}
PATHS = ("/v1/responses", "/v1/responses/compact")


def read(**more):
    return parse_request.parse_body({"model": MODEL, "input": "hello", **more})


WRONG = [
    ({"model": None}, "model"),
    ({"model": ""}, "model"),
    ({"model": 3}, "model"),
    ({"model": "x" * 201}, "model"),
    ({"input": None}, "input"),
    ({"input": []}, "input"),
    ({"input": 3}, "input"),
    ({"input": ["text"]}, "input[0]"),
    ({"input": [{"role": "user"}]}, "input[0]"),
    ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
    ({"input": [{"type": "message", "content": "x"}]}, "input[0].role"),
    ({"input": [{"type": "nonsense"}]}, "input[0].type"),
    ({"input": [{"type": 7}]}, "input[0].type"),
    ({"input": [{"type": ["message"], "role": "user"}]}, "input[0].type"),
    ({"input": [{"role": {}, "content": "x"}]}, "input[0].role"),
    ({"input": ["x", {"role": "user", "content": 3}]}, "input[0]"),
    ({"input": [{"role": "user", "content": [{"type": "output_text", "text": "x"}]}]}, "input[0].content[0].type"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0]"),
    ({"input": [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}]}, "input[0].content[0].type"),
    ({"input": [{"type": "function_call", "call_id": "c", "name": "a b", "arguments": "{}"}]}, "input[0].name"),
    ({"input": [{"type": "function_call", "call_id": "c", "name": "a", "arguments": {}}]}, "input[0].arguments"),
    ({"input": [{"type": "function_call_output", "call_id": "", "output": "x"}]}, "input[0].call_id"),
    ({"input": [{"type": "function_call_output", "call_id": "c", "output": {}}]}, "input[0].output"),
    ({"input": [{"type": "compaction", "encrypted_content": "e30:x"}]}, "input[0].encrypted_content"),
    ({"input": [{"type": "item_reference"}]}, "input[0]"),
    ({"input": [{"role": "user", "content": [{"type": "input_video", "video_url": "x"}]}]}, "input[0].content[0].type"),
    ({"instructions": ["x"]}, "instructions"),
    ({"max_output_tokens": 15}, "max_output_tokens"),
    ({"max_output_tokens": 1e9}, "max_output_tokens"),
    ({"max_tool_calls": 0}, "max_tool_calls"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"temperature": 2.1}, "temperature"),
    ({"temperature": "warm"}, "temperature"),
    ({"top_p": -0.1}, "top_p"),
    ({"presence_penalty": 3}, "presence_penalty"),
    ({"safety_identifier": "x" * 65}, "safety_identifier"),
    ({"prompt_cache_key": "x" * 65}, "prompt_cache_key"),
    ({"truncation": "some"}, "truncation"),
    ({"service_tier": "fast"}, "service_tier"),
    ({"include": ["everything"]}, "include[0]"),
    ({"include": ["message.output_text.logprobs"]}, "include"),
    ({"stream": "yes"}, "stream"),
    ({"store": 1}, "store"),
    ({"metadata": {"a": 1}}, "metadata"),
    ({"metadata": {"a": "x" * 513}}, "metadata"),
    ({"metadata": {str(n): "" for n in range(17)}}, "metadata"),
    ({"metadata": {"conversation_id": ""}}, "metadata.conversation_id"),
    ({"metadata": {"conversation_id": "x" * 201}}, "metadata.conversation_id"),
    ({"metadata": {"conversation_id": "a\0b"}}, "metadata.conversation_id"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format"),
    ({"reasoning": {"effort": "huge"}}, "reasoning.effort"),
    ({"tools": {}}, "tools"),
    ({"tools": ["rain"]}, "tools[0].type"),
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "tools[0]"),
    ({"tools": [RAIN | {"name": "rain in spain"}]}, "tools[0].name"),
    ({"tools": [RAIN | {"parameters": []}]}, "tools[0].parameters"),
    ({"tools": [RAIN, RAIN]}, "tools[1].name"),
    ({"tools": [{"type": "function", "function": {"name": 3}}]}, "tools[0].function.name"),
    ({"tools": [{"type": "function", "name": f"f{n}"} for n in range(129)]}, "tools"),
    ({"tool_choice": "maybe"}, "tool_choice"),
    ({"tool_choice": 3}, "tool_choice"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
    ({"tool_choice": {"type": "allowed_tools", "tools": "rain"}}, "tool_choice.tools"),
    ({"tool_choice": {"type": "allowed_tools", "mode": "x", "tools": []}}, "tool_choice.mode"),
    ({"allowed_tools": "rain"}, "allowed_tools"),
    ({"allowed_tools": [3]}, "allowed_tools[0]"),
    ({"allowed_tools": ["rain"], "tool_choice": {"type": "function", "name": "sun"}}, "tool_choice"),
    ({"allowed_tools": ["a"], "tool_choice": {"type": "allowed_tools", "tools": [RAIN]}}, "allowed_tools"),
    ({"previous_response_id": 3}, "previous_response_id"),
]


@pytest.mark.parametrize(("more", "field"), WRONG, ids=lambda value: json.dumps(value)[:60])
def test_a_wrong_field_is_named(more, field):
    with pytest.raises(Invalid) as refused:
        read(**more)

    assert refused.value.field == field
    assert refused.value.message


def test_a_message_whose_type_is_null_is_stored_as_one():
    (item,) = read(input=[{"type": None, "role": "user", "content": "x"}]).input

    assert item["type"] == "message"


def test_a_field_that_is_added_to_the_schema_is_stored(monkeypatch):
    class WithSeed(request_schema.ResponseBody, kw_only=True):
        seed: int | None = None

    monkeypatch.setattr(request_schema, "body_shape", Converter(WithSeed))

    assert read(seed=7, top_p=0.5, user="x", store=None).params == {"top_p": 0.5, "seed": 7}
    assert read(seed=None).params == {}


NAMED = [RAIN | {"name": name} for name in ("rain", "sun")]


@pytest.mark.parametrize(
    ("given", "allowed", "choice", "names"),
    [
        (None, None, "auto", None),
        ("none", None, "none", None),
        ("required", ["rain", "rain"], "required", ["rain"]),
        (None, [], "auto", None),
        ("auto", [{"type": "function", "name": "rain"}], "auto", ["rain"]),
        (None, {"mode": "required", "tools": NAMED}, "required", ["rain", "sun"]),
        ("none", {"type": "allowed_tools", "mode": "auto", "tools": NAMED}, "none", ["rain", "sun"]),
        ({"type": "function", "name": "rain"}, ["rain"], {"type": "function", "name": "rain"}, ["rain"]),
        ({"type": "function", "function": {"name": "rain"}}, None, {"type": "function", "name": "rain"}, None),
        ({"type": "allowed_tools", "mode": "required", "tools": NAMED}, None, "required", ["rain", "sun"]),
        ({"type": "allowed_tools", "tools": []}, None, "auto", None),
        ({"type": "allowed_tools", "tools": NAMED}, [], "auto", ["rain", "sun"]),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "none", "tools": [{"type": "function", "function": RAIN}]},
            },
            None,
            "none",
            ["rain"],
        ),
    ],
)
def test_every_shape_of_a_choice_becomes_one(given, allowed, choice, names):
    assert tools_and_choice.read_choice(given, allowed) == (choice, names)


def test_nested_tools_become_flat():
    nested = {"type": "function", "function": {"name": "rain", "parameters": {"type": "object"}}}
    flat = RAIN | {"description": None, "parameters": {"type": "object"}, "strict": None}

    assert tools_and_choice.read_tools([nested]) == [flat]
    assert tools_and_choice.read_tools([flat]) == [flat]


def test_short_messages_and_texts_become_whole_items():
    (message,) = read().input
    assert message == {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}

    (item,) = read(input=[{"role": "user", "content": "hi"}]).input
    assert item == {"type": "message", "role": "user", "content": "hi"}


def test_depth_and_size_have_bounds():
    deep = b'{"model":"m","input":' + b"[" * 101 + b"]" * 101 + b"}"
    with pytest.raises(TooLarge):
        parse_request.read(deep)
    for body in (b"", b"[]", b"null", b'"x"', b"{", b'{"model":NaN}', b'{"model":"\xff"}', b'{"a":"\\ud800"}'):
        with pytest.raises(Invalid):
            parse_request.read(body)


def test_secrets_are_covered_and_words_are_not():
    request = read(
        api_key="sk-top-level-0123456789",
        input=[
            {"role": "user", "content": "my key is sk-abcdefghijklmnop, my password: tulip"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"api_key": "tulip", "q": 1}'},
            {"type": "acme:server", "headers": {"X-Api-Key": "tulip", "Authorization": "Bearer tulipsandroses"}},
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,sk-notakey0123"}]},
        ],
        instructions="Use Bearer abcdefghijklmnop77",
        metadata={"password": "tulip", "note": "fine"},
        tools=[RAIN | {"parameters": {"properties": {"password": {"type": "string"}}}}],
    )

    text = json.dumps([request.input, request.instructions, request.params, request.tools])
    for secret in ("sk-top", "sk-abcdef", '"tulip"', "tulipsandroses", "abcdefghijklmnop77"):
        assert secret not in text, secret
    assert "my password: tulip" in text
    assert "sk-notakey0123" in text
    assert request.params["metadata"]["note"] == "fine"
    assert request.tools[0]["parameters"] == {"properties": {"password": {"type": "string"}}}


@pytest.mark.django_db(transaction=True)
def test_no_secret_of_a_body_is_in_the_record():
    with desk_open() as desk:
        answer = desk.create("hello", api_key="sk-0123456789abcdef", metadata={"api_key": "0123456789abcdef"})

    assert answer.status == 200
    assert not Event.objects.filter(body__contains="0123456789abcdef").exists()


@pytest.mark.django_db(transaction=True)
def test_who_may_not_ask_is_told_so_in_the_forms_words():
    with desk_open() as desk:
        secrets = {role: tokens.make_token(SYSTEM, role, role) for role in ("viewer", "approver", "auditor", "admin")}
        secrets["agent"] = tokens.make_token(SYSTEM, "clerk", "agent", agent="Clerk")
        for path in PATHS:
            for role, secret in secrets.items():
                answer = desk.ask({"model": MODEL, "input": "x"}, path, headers={"authorization": f"Bearer {secret}"})
                assert answer.status == (200 if role == "admin" else 403), role
            for headers in ({}, {"cookie": "sessionid=x"}, {"authorization": "Bearer sb_nobody"}):
                answer = desk.ask({"model": MODEL, "input": "x"}, path, headers=headers)
                error = answer.json["error"]
                assert (answer.status, error["type"], error["param"]) == (401, "invalid_request", None)
                assert answer.headers["www-authenticate"] == "Bearer"
        desk.authenticator._notes.submit(refusal_counter.flush, everything=True).result()

    assert Event.objects.filter(kind="response.received").count() == 1
    assert AuditEntry.objects.filter(verb="respond", outcome="refused").count() >= 2


@pytest.mark.django_db(transaction=True)
def test_a_token_revoked_between_the_look_and_the_commit_stores_nothing():
    with desk_open() as desk:
        assert desk.create().status == 200
        caller = desk.run(
            lambda: desk.authenticator.caller(
                {"headers": [(b"authorization", f"Bearer {desk.token}".encode())]}, "respond"
            )
        )
        tokens.revoke_token(SYSTEM, "asker-operator")
        before = Event.objects.count()
        with pytest.raises(Exception, match="may not respond"):
            desk.run(lambda: desk.context.receive(caller, read))

    assert Event.objects.count() == before


@pytest.mark.slow
@needs_document
@pytest.mark.django_db(transaction=True)
def test_abuse_is_refused_and_never_an_error_of_ours():
    bodies = [
        *(b"x" * 10, b"", b"[]", b"{}", b"null", b"\xff\xfe", b'{"model":' + b"[" * 5000),
        b'{"model":"m","input":' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}",
        json.dumps({"model": MODEL, "input": "x" * (1 << 20)}).encode(),
        json.dumps({"model": MODEL, "input": "\u00e9" * 200_000, "metadata": {"a": "b"}}).encode(),
        *(json.dumps({"model": MODEL, "input": "x", **more}).encode() for more, _ in WRONG if "input" not in more),
        json.dumps({"model": MODEL, "input": "x", "tools": [{"type": "acme:unknown"}]}).encode(),
    ]
    with desk_open() as desk:
        for path in PATHS:
            for body in bodies:
                answer = desk.ask(body, path)
                assert answer.status < 500, body[:80]
                if answer.status >= 400:
                    open_responses.check_error(answer.json)
        for method in ("GET", "PUT", "DELETE", "HEAD"):
            answer = desk.ask(b"", method=method)
            assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert desk.ask(b"x" * ((1 << 20) + 1)).status == 413


@pytest.mark.django_db(transaction=True)
def test_a_server_that_is_not_ready_says_try_again():
    desk = Desk()
    desk.runtime.state = "stopping"

    answer = desk.create()

    desk.close()
    assert (answer.status, answer.json["error"]["type"], answer.headers["retry-after"]) == (503, "server_error", "1")
