"""`POST /api/v1/publish`: what is acknowledged is stored once, whatever stands beside it (§3.6)."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from conversations.asgi import route
from conversations.core.errors import TooLarge
from tests.support.doors import ask, encode, events_of, message, message_payload, token
from tests.support.revocation import revoke

BAD = message("nowhere", {})


def test_one_message_is_answered_with_its_place(caller):
    answer = caller.publish("chat:one", message_payload("one", "hello"), "m1")

    assert (answer.status, answer.body) == (201, {"id": "m1", "conversation_id": "one", "seq": 1})


def test_the_same_again_gets_the_same_answer_and_another_payload_409(server, caller):
    first = caller.publish("chat:same", message_payload("same", "hello"), "m1")

    again = caller.publish("chat:same", message_payload("same", "hello"), "m1")
    assert (again.status, again.body) == (201, first.body)
    other = caller.publish("chat:same", message_payload("same", "other"), "m1")

    assert (other.status, other.body["error"]["code"]) == (409, "id_reused")
    assert len(events_of(server, "same")) == 1


def test_a_topic_that_names_no_conversation_has_no_place(caller):
    answer = caller.publish("signal:all", {"go": 1}, "s1")

    assert answer.body == {"id": "s1", "conversation_id": None, "seq": None}
    assert caller.publish("signal:all", {"go": 1}, "s1").status == 201
    assert caller.publish("signal:all", {"go": 2}, "s1").body["error"]["code"] == "id_reused"


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_neighbours_of_bad_messages_are_stored_in_order(server, caller, form):
    key = f"neighbours-{form}"
    good = [message(f"chat:{key}", message_payload(key, f"{n}"), f"m{n}") for n in range(4)]
    sent = [good[0], BAD, good[1], message(f"chat:{key}", 7), good[2], message(f"chat:{key}", {"type": "x"}), good[3]]

    answer = caller.batch(*sent) if form == "json" else caller.lines(*map(encode, sent))

    items = answer.body["items"]
    assert answer.status == 200
    assert [item.get("seq") for item in items] == [1, None, 2, None, 3, None, 4]
    assert [item["error"]["field"] for item in items if "error" in item] == [
        "topic",
        "payload",
        "payload.conversation_id",
    ]
    assert [body["content"] for _, _, body in events_of(server, key)] == ["0", "1", "2", "3"]


def test_a_line_that_is_no_json_costs_itself_alone(caller):
    answer = caller.lines(encode(token("lines", 0)), b"{nonsense", b"", b"\xff\xfe", encode(token("lines", 1)))

    assert [item.get("seq") for item in answer.body["items"]] == [1, None, None, 1]


def test_a_message_nested_too_deep_costs_itself_alone(caller):
    deep = '{"topic": "stream:deep", "payload": {"]": ' + "[" * 10_000 + "]" * 10_000 + "}}"
    body = f'{{"messages": [{encode(token("deep", 0)).decode()}, {deep}, {encode(token("deep", 1)).decode()}]}}'

    answer = caller.ask("POST", "/api/v1/publish", body.encode())

    assert [item.get("seq") for item in answer.body["items"]] == [1, None, 1]


@pytest.mark.parametrize("bad", ['"\\ud800"', r'"\q"', "01", "NaN", '"\x01"', "nonsense", "-"])
def test_a_message_that_no_reader_can_read_costs_itself_alone(caller, bad):
    key = f"unread-{bad.encode().hex()}"
    good = [encode(token(key, n)).decode() for n in range(2)]
    body = f'{{"messages": [{good[0]}, {{"topic": "stream:x", "payload": {{"a": [{bad}]}}}} , {good[1]}]}}'

    answer = caller.ask("POST", "/api/v1/publish", body.encode())

    assert answer.status == 200
    assert [item.get("seq") for item in answer.body["items"]] == [1, None, 1]
    assert answer.body["items"][1]["error"]["code"] == "invalid"


@pytest.mark.parametrize(
    "body",
    [
        '{"messages": [{"a": 01}',
        '{"messages": [{"a": 01}]',
        '{"messages": [{"a": 01} {}]}',
        '{"messages": [{"a": 01}], "x": y}',
    ],
)
def test_a_list_that_does_not_end_well_is_refused_whole(caller, body):
    assert caller.ask("POST", "/api/v1/publish", body.encode()).status == 400


def test_an_id_again_within_a_batch_is_the_same_message_or_an_error(server, caller):
    hello, other = (
        message("chat:twice", message_payload("twice", "a"), "m1"),
        message("chat:twice", message_payload("twice", "b"), "m1"),
    )

    items = caller.batch(hello, hello, other).body["items"]

    assert items[0] == items[1] == {"id": "m1", "conversation_id": "twice", "seq": 1}
    assert items[2]["error"]["code"] == "id_reused"
    assert len(events_of(server, "twice")) == 1


def test_limits_of_a_batch_are_told(caller):
    exactly = caller.batch(*[message("signal:many", {"n": n}) for n in range(1000)])
    many = caller.batch(*[message("signal:many", {"n": n}) for n in range(1001)])
    large = caller.lines(*[encode(token("large", 0, text="x" * (1 << 20)))] * 8)
    payload = caller.batch(message("stream:large", {"event": "log", "text": "x" * (1 << 20)}), token("large", 0))

    assert (exactly.status, len(exactly.body["items"])) == (200, 1000)
    assert (many.status, many.body["error"]["field"]) == (413, "messages")
    assert (large.status, large.body["error"]["code"]) == (413, "too_large")
    assert payload.body["items"][0]["error"]["code"] == "too_large"
    assert payload.body["items"][1]["seq"] == 1


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b'{"topic":"stream:x"}', b'{"payload":{}}', b'{"messages":{}}', b'{"id":1}']
)
def test_a_body_that_is_no_message_is_refused(caller, body):
    assert caller.ask("POST", "/api/v1/publish", body).status == 400


def test_no_messages_are_no_trouble(caller):
    assert caller.batch().body == {"items": []}
    assert caller.lines().body == {"items": []}


# Tokens of one request become one event, and each is still found by its own id (§3.1).


def test_tokens_of_one_request_are_one_event(server, caller):
    items = caller.batch(*[token("joined", n, f"t{n}") for n in range(5)]).body["items"]

    assert [(item["id"], item["seq"]) for item in items] == [(f"t{n}", 1) for n in range(5)]
    ((_, kind, body),) = events_of(server, "joined")
    assert (kind, body["text"], body["index"], body["last_index"]) == ("token", "0 1 2 3 4 ", 0, 4)


def test_tokens_are_joined_with_nothing_that_differs(server, caller):
    a, b = {"agent": "A"}, {"agent": "B"}
    sent = [token("apart", 0, **a), token("apart", 1, **a), token("apart", 2, **b), token("other", 3, **b)]
    sent += [token("apart", 3, **b), token("apart", 0, **b), token("apart", 1, extra=1, **b)]
    sent += [message("chat:apart", message_payload("apart", "x")), token("apart", 2, **b), token("apart", 2, **b)]

    caller.batch(*sent)

    texts = [body.get("text") or body["content"] for _, _, body in events_of(server, "apart")]
    assert texts == ["0 1 ", "2 ", "3 ", "0 ", "1 ", "x", "2 ", "2 "]


def test_tokens_come_again_in_any_grouping_and_are_stored_once(server, caller):
    tokens = [token("again", n, f"t{n}") for n in range(8)]
    caller.batch(*tokens[:3])
    caller.publish(**_message_of(tokens[3]))

    for again in (tokens[1:2], tokens[:5], tokens[2:4], tokens, tokens[6:], tokens[4:6]):
        items = caller.batch(*again).body["items"]
        assert [item["id"] for item in items] == [item["id"] for item in again]
    single = caller.publish(**_message_of(tokens[6]))

    assert single.status == 201
    assert "".join(body["text"] for _, _, body in events_of(server, "again")) == "0 1 2 3 4 5 6 7 "
    clash = caller.batch(tokens[0], token("again", 1, "t1", text="other")).body["items"]
    assert clash[0]["seq"] == 1
    assert clash[1]["error"]["code"] == "id_reused"


def test_reported_tokens_are_found_again_by_their_ids_in_their_own_conversation(server, callers):
    def report(key):
        messages = [token(key, index, f"word-{index}") for index in range(3)]
        return callers["telemetry"].ask("POST", "/api/v1/report", encode({"messages": messages}))

    answers = [report("reported-1"), report("reported-2"), report("reported-1")]

    assert [answer.status for answer in answers] == [200] * 3
    assert [[item["seq"] for item in answer.body["items"]] for answer in answers] == [[1, 1, 1]] * 3
    assert [body["text"] for *_, body in events_of(server, "reported-1")] == ["0 1 2 "]


def test_a_report_that_may_not_be_made_costs_itself_alone(server, callers):
    reports = [
        message("stream:some-reports", {"event": "log", "text": "before"}),
        message("stream:some-reports", {"event": "conversation.paused"}),
        message("signal:go", {"event": "signal"}),
        message("stream:some-reports", {"event": "log", "text": "after"}),
    ]

    answer = callers["telemetry"].ask("POST", "/api/v1/report", encode({"messages": reports}))

    items = answer.body["items"]
    assert [item["seq"] if "seq" in item else item["error"]["field"] for item in items] == [
        1, "payload.event", "payload.conversation_id", 2
    ]  # fmt: skip
    assert [body["text"] for *_, body in events_of(server, "some-reports")] == ["before", "after"]


def test_many_who_send_the_same_tokens_at_once_store_them_once(server, caller):
    tokens = [token("crowd", n, f"t{n}") for n in range(30)]
    cuts = [tokens[at : at + size] for size in (1, 3, 7, 30) for at in range(0, 30, size)] * 2

    with ThreadPoolExecutor(8) as crowd:
        answers = list(crowd.map(lambda some: caller.batch(*some), cuts))

    assert {answer.status for answer in answers} == {200}
    words = "".join(body["text"] for _, _, body in events_of(server, "crowd")).split()
    assert sorted(words, key=int) == [str(n) for n in range(30)]


def _message_of(sent: dict) -> dict:
    return {"topic": sent["topic"], "payload": sent["payload"], "bus_id": sent["id"]}


# Who may, and when the server cannot.


def test_a_token_revoked_before_the_commit_writes_nothing(server, callers):
    robot = callers["leaver"]
    assert robot.publish("chat:revoked", message_payload("revoked", "before")).status == 201

    revoke(server, "leaver")
    answers = [robot.publish("chat:revoked", message_payload("revoked", "after")) for _ in range(3)]

    assert {answer.status for answer in answers} == {401}
    assert [body["content"] for _, _, body in events_of(server, "revoked")] == ["before"]


def test_a_wrong_method_is_told_the_right_one(server, caller):
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "PATCH"):
        answer = caller.ask(method, "/api/v1/publish")
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert answer.body["error"]["code"] == "method_not_allowed"
    assert caller.ask("HEAD", "/api/v1/publish").status == 405


def test_without_a_token_nothing_is_taken(server):
    answer = ask(server, "POST", "/api/v1/publish", encode(token("x", 0)))

    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_body_that_tells_no_length_is_bounded_while_it_comes(count):
    parts = [{"type": "http.request", "body": b"x" * 6, "more_body": number < count} for number in range(1, count + 1)]

    async def receive():
        return parts.pop(0)

    if count == 1:
        assert asyncio.run(route.body({"headers": []}, receive, limit=10)) == b"xxxxxx"
        return
    with pytest.raises(TooLarge):
        asyncio.run(route.body({"headers": []}, receive, limit=10))
    assert len(parts) == count - 2
