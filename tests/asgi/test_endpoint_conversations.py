"""`GET /api/v1/conversations…`: lists, one, its events; by keyset, in the shapes of §3.6."""

import pytest

from conversations.core.url_converters import to_url
from tests.support.doors import Caller, ask, message_payload

CONVERSATION = {
    *("conversation_id", "title", "epoch", "head_seq", "participants", "messages", "tool_calls", "errors", "state"),
    *("has_more_participants", "shown_state", "owner", "last_activity_at", "url", "forked_from"),
}
EVENT = ["seq", "kind", "at", "created_at", "sender", "recipient", "principal", "event_id", "body"]


@pytest.fixture
def long(caller: Caller) -> None:
    """A conversation of 25 events."""
    caller.batch(
        *[{"topic": "chat:long", "payload": message_payload("long", f"{n}"), "id": f"m{n}"} for n in range(1, 26)]
    )


def test_one_conversation_has_the_shape_of_the_list(caller, long):
    answer = caller.get("/api/v1/conversations/long")
    (listed,) = [c for c in caller.get("/api/v1/conversations?q=long").body["items"] if c["conversation_id"] == "long"]

    assert answer.status == 200
    assert answer.body == listed
    assert set(answer.body) == CONVERSATION
    assert (answer.body["head_seq"], answer.body["messages"], answer.body["participants"]) == (
        25,
        25,
        ["agent:A", "agent:B"],
    )


@pytest.mark.parametrize("key", ["a b/c", "~wave", "ä" * 100, "..", "x" * 200, "d.e-f_g"])
def test_any_id_has_an_address(caller, key):
    caller.publish("chat:any", message_payload(key, "x"))

    for path in (f"/api/v1/conversations/{to_url(key)}", f"/api/v1/conversations/{to_url(key)}/events"):
        assert caller.get(path).status == 200
    assert caller.get(f"/api/v1/conversations/{to_url(key)}").body["conversation_id"] == key


@pytest.mark.parametrize("address", ["nowhere", "~", "~!!", "~YQ", "x" * 201, "a%20b", "..", "long/nowhere"])
def test_an_address_without_a_conversation_answers_404_in_json(caller, address):
    for path in (f"/api/v1/conversations/{address}", f"/api/v1/conversations/{address}/events"):
        answer = caller.get(path)
        assert (answer.status, answer.body["error"]["code"]) == (404, "not_found")


def test_an_event_has_its_shape_and_its_body_as_it_came(server, caller):
    body = '{"type": "message",  "conversation_id":"shape", "sender":"agent:A", "recipient":"agent:B","x":1.0e5}'
    caller.ask("POST", "/api/v1/publish", f'{{"topic":"chat:shape","payload":{body},"id":"s1"}}'.encode())

    answer = caller.get("/api/v1/conversations/shape/events")

    (event,) = answer.body["items"]
    assert list(event) == EVENT
    assert (event["seq"], event["kind"], event["sender"], event["recipient"]) == (1, "message", "agent:A", "agent:B")
    assert (event["principal"], event["event_id"], event["created_at"]) == ("token:admin", "s1", None)
    assert event["body"]["x"] == 100_000


def test_senders_of_any_type_are_told_as_text_or_null(caller):
    for n, payload in enumerate([{"sender": 7}, {"agent": "A"}, {"created_at": [], "recipient": {}}, {}]):
        caller.publish("stream:odd", {"event": "log", **payload}, f"o{n}")

    items = caller.get("/api/v1/conversations/odd/events").body["items"]

    assert [item["sender"] for item in items] == [None, "agent:A", None, None]
    assert {item["created_at"] for item in items} == {None}


def seqs(caller: Caller, **fields: object) -> tuple[list[int], str | None]:
    """Read a page of the long conversation: its seqs and the cursor."""
    query = "&".join(f"{name}={value}" for name, value in fields.items())
    answer = caller.get(f"/api/v1/conversations/long/events?{query}")
    assert answer.status == 200, answer.body
    return [item["seq"] for item in answer.body["items"]], answer.body["cursor"]


def test_events_are_paged_forwards_and_backwards(caller, long):
    assert seqs(caller, limit=10) == (list(range(16, 26)), "16")
    assert seqs(caller, before=16, limit=10) == (list(range(6, 16)), "6")
    assert seqs(caller, before=6, limit=10) == (list(range(1, 6)), None)
    assert seqs(caller, after=0, limit=10) == (list(range(1, 11)), "10")
    assert seqs(caller, after=10, limit=15) == (list(range(11, 26)), None)
    assert seqs(caller, after=14, limit=10) == (list(range(15, 25)), "24")
    assert seqs(caller, before=12, limit=10) == (list(range(2, 12)), "2")
    assert seqs(caller, after=25) == ([], None)
    assert seqs(caller, before=1) == ([], None)


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=501", "limit=x", "after=-1", "before=0", "after=1&before=9", "after=99999999999999999999"],
)
def test_a_wrong_field_is_named(caller, query):
    answer = caller.get(f"/api/v1/conversations/long/events?{query}")

    assert answer.status == 400
    assert answer.body["error"]["field"] in ("limit", "after", "before")


def test_a_list_is_paged_without_a_hole(caller):
    for n in range(7):
        caller.publish("chat:pages", message_payload(f"paged-list-{n}", "x"))
    keys, before = [], ""
    while True:
        page = caller.get(f"/api/v1/conversations?q=paged-list-&limit=3&before={before}").body
        keys += [item["conversation_id"] for item in page["items"]]
        if not (before := page["cursor"]):
            break

    assert keys == [f"paged-list-{n}" for n in range(6, -1, -1)]


@pytest.mark.parametrize("query", ["q=%00", "q=%FF", "participant=%00", "q=" + "%25" * 20_000, "q=" + "a%20" * 5000])
def test_a_search_may_be_anything(caller, query):
    assert caller.get(f"/api/v1/conversations?{query}").status == 200


@pytest.mark.parametrize("path", ["", "/long", "/long/events"])
def test_only_reading_is_possible(server, caller, path, long):
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        answer = caller.ask(method, f"/api/v1/conversations{path}")
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")
    assert caller.ask("HEAD", f"/api/v1/conversations{path}").status == 200
    assert ask(server, "GET", f"/api/v1/conversations{path}").status == 401


@pytest.mark.parametrize("path", ["/api/v1/", "/api/v1/nowhere", "/api/v1/publish/", "/api/v2/publish", "/api/v1"])
def test_unknown_addresses_answer_404_in_json(server, path):
    for method in ("GET", "POST"):
        answer = ask(server, method, path)
        assert (answer.status, answer.body["error"]["code"]) == (404, "not_found")
