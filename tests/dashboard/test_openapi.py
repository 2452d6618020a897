"""The OpenAPI document is true: every route is in it, and what is answered has the shapes it tells."""

from typing import Any

import jsonschema
import pytest

from conversations.events import registry
from dashboard.api.openapi.document import document
from tests.support.access import addresses
from tests.support.doors import Answer, ask, message, message_payload, token
from tests.support.live import until

# How an address of ours is called in the document.
NAMES = {"{cid}": "{id}"}


def test_every_route_of_the_api_is_in_the_document_and_nothing_else():
    ours = {address for address in addresses() if address.startswith("/api/")}
    for name, known in NAMES.items():
        ours = {address.replace(name, known) for address in ours}

    assert ours == set(document()["paths"])


def test_the_document_is_served_and_its_references_lead_somewhere(door_server):
    answer = ask(door_server, "GET", "/api/v1/openapi.json")

    assert answer.body == document()
    assert {ref.rpartition("/")[2] for ref in _refs(document())} <= set(document()["components"]["schemas"])


def test_every_kind_we_write_is_in_the_document():
    mapping = _schema("ToPublish")["properties"]["payload"]["anyOf"][0]["discriminator"]["mapping"]

    assert set(mapping) == set(registry.names())


STORED_AS_SENT = ("/api/v1/publish", "/api/v1/report")  # payloads: the database looks up none of their numbers


def test_each_number_of_a_request_is_one_that_a_database_can_look_up():
    unbounded = [
        f"{method} {path}: {place}"
        for path, item in document()["paths"].items()
        for method, operation in item.items()
        if path not in STORED_AS_SENT
        for place in _unbounded([p for p in operation["parameters"] if p["in"] != "path"], operation.get("requestBody"))
    ]

    assert unbounded == []


def _unbounded(*parts):
    """Return where a whole number has no maximum, in these parts of the document and what they refer to."""
    places, names, left = [], set(), [("", part) for part in parts]
    while left:
        place, part = left.pop()
        if isinstance(part, list):
            left += [(f"{place}/{n}", item) for n, item in enumerate(part)]
        if not isinstance(part, dict):
            continue
        if part.get("type") == "integer" and not part.keys() & {"maximum", "exclusiveMaximum", "enum", "const"}:
            places.append(place)
        name = part.get("$ref", "").rpartition("/")[2]
        if name and name not in names:
            names.add(name)
            left.append((name, _schema(name)))
        left += [(f"{place}/{field}", item) for field, item in part.items()]
    return places


def test_answers_have_the_shapes_that_the_document_tells(door_server, callers):
    admin, desk, viewer = callers["admin"], callers["desk"], callers["viewer"]
    published = admin.publish("chat:told", message_payload("told", "x", recipient="agent:Desk"), "t1")
    long, all_, single = "/api/v1/topics/{topic}/messages", "/api/v1/conversations", "/api/v1/conversations/{id}"
    messages = "/api/v1/topics/{}/messages"

    fits("/api/v1/publish", "post", published, 201)
    fits("/api/v1/publish", "post", admin.publish("signal:x", {}), 201)
    fits("/api/v1/publish", "post", admin.batch(token("told", 0), message("x", {})), 200)
    fits("/api/v1/publish", "post", admin.publish("chat:told", {}, "t1"), 400)
    fits("/api/v1/publish", "post", admin.publish("chat:told", message_payload("told", "y"), "t1"), 409)
    fits("/api/v1/publish", "post", desk.publish("stream:x", {"sender": "agent:X"}), 403)
    fits("/api/v1/publish", "post", viewer.publish("stream:x", {}), 403)
    fits("/api/v1/publish", "post", ask(door_server, "POST", "/api/v1/publish"), 401)
    fits("/api/v1/publish", "post", admin.batch(*[{}] * 1001), 413)
    fits("/api/v1/publish", "get", admin.get("/api/v1/publish"), 405)
    fits(long, "get", admin.get(messages.format("stream:told")), 200)
    fits(long, "get", admin.get(messages.format("chat:told") + "?last_id=never"), 400)
    fits(long, "get", desk.get(messages.format("chat:Other")), 403)
    fits(long, "get", admin.get("/api/v1/topics/x"), 404)
    fits(all_, "get", admin.get(all_), 200)
    fits(all_, "get", desk.get(all_), 200)
    fits(all_, "get", admin.get(all_ + "?limit=x"), 400)
    fits(single, "get", admin.get(all_ + "/told"), 200)
    fits(single, "get", admin.get(all_ + "/nowhere"), 404)
    fits(single, "get", desk.get(all_ + "/nowhere"), 403)
    fits(single + "/events", "get", admin.get(all_ + "/told/events?limit=1"), 200)
    fits(single + "/events", "get", admin.get(all_ + "/told/events?after=x"), 400)
    search = "/api/v1/search"
    until(lambda: admin.get(search + "?q=x&conversation=told").body["items"], what="the index")
    fits(search, "get", viewer.get(search + "?q=x&conversation=told"), 200)
    fits(search, "get", viewer.get(search + "?q=x&since=never"), 400)
    fits(search, "get", desk.get(search + "?q=x"), 403)
    fits("/api/v1/import", "post", admin.ask("POST", "/api/v1/import", IMPORT), 200)
    fits("/api/v1/import", "post", admin.ask("POST", "/api/v1/import", b"x"), 400)
    fits("/api/v1/door", "post", admin.ask("POST", "/api/v1/door", b'{"name":"x"}'), 401)
    fits("/api/v1/read-markers", "get", viewer.get("/api/v1/read-markers"), 403)
    policies = "/api/v1/policies"
    rule = b'{"format":"switchboard-policy/1","policies":[{"tool":"none_such","rule":"ask"}]}'
    fits(policies, "put", admin.ask("PUT", policies, rule), 200)
    fits(policies, "get", admin.get(policies), 200)
    fits(policies, "put", admin.ask("PUT", policies, rule.replace(b"ask", b"no")), 400)
    fits(policies, "get", viewer.get(policies), 403)


@pytest.mark.django_db
def test_a_persons_markers_have_their_shapes(client_of_viewer):
    path = "/api/v1/read-markers"

    for answer in (
        client_of_viewer.get(path),
        client_of_viewer.post(path, {"conversation_id": "x", "last_seq": 1}, content_type="application/json"),
        client_of_viewer.post(path, {}, content_type="application/json"),
    ):
        answer_ = Answer(answer.status_code, {"content-type": answer["Content-Type"]}, answer.json())
        fits(path, answer.request["REQUEST_METHOD"].lower(), answer_, answer.status_code)


IMPORT = b'{"conversation":"imported-here"}\n{"payload":{"event":"log","conversation_id":"imported-here"}}\n{"end":1}\n'


@pytest.fixture
def client_of_viewer() -> Any:
    """A viewer's browser."""
    from tests.support.cast import client_of, person

    return client_of(person("vera", "viewer"))


def fits(path: str, method: str, answer: Answer, status: int) -> None:
    """Hold one answer against the document."""
    operations = document()["paths"][path]
    operation = operations.get(method) or next(iter(operations.values()))
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/json"
    schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
    jsonschema.validate(answer.body, schema | {"components": document()["components"]})


def _schema(name: str) -> Any:
    return document()["components"]["schemas"][name]


def _refs(value: Any) -> list[str]:
    if isinstance(value, dict):
        refs = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return refs + [ref for nested in value.values() for ref in _refs(nested)]
    return [ref for nested in value for ref in _refs(nested)] if isinstance(value, list) else []
