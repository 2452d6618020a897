"""`/v1/responses/{id}` and what else clients of the form ask for: by id, as a stream again, models, errors."""

import itertools
import json

import openai
import pytest

from conversations.access.accounts import tokens
from conversations.core.errors import NotAllowed
from conversations.core.principals import SYSTEM, token_principal
from conversations.events.log.rebuild import rebuild
from conversations.events.response_ids import new_response_id
from conversations.models import AuditEntry, Event, Response, Run
from conversations.runs import stop_and_rerun
from conversations.runs.responses import cancel_or_delete
from tests.support import open_responses, stand_in
from tests.support.cast import cast
from tests.support.live import until
from tests.support.open_responses import needs_document
from tests.support.responses_served import served_desk
from tests.support.stand_in import MODEL

pytestmark = pytest.mark.django_db(transaction=True)
UNKNOWN = ("GET", "/v1/files"), ("POST", "/v1/chat/completions"), ("DELETE", "/v1"), ("GET", "/v1/responses/x/y")


@pytest.fixture
def client(transactional_db):
    with (
        served_desk() as served,
        openai.OpenAI(base_url=served.url, api_key=served.desk.token, max_retries=0, timeout=60) as official,
    ):
        yield official


def test_the_official_client_polls_and_cancels_what_runs_in_the_background(client):
    held = client.responses.create(model=MODEL, input="hold", background=True)
    assert held.status == "in_progress"
    assert client.responses.retrieve(held.id).status in ("queued", "in_progress")
    until(lambda: client.responses.retrieve(held.id).status == "in_progress")

    assert client.responses.cancel(held.id).status == "cancelled"
    assert client.responses.cancel(held.id).status == "cancelled"
    assert client.responses.retrieve(held.id).status == "cancelled"

    quick = client.responses.create(model=MODEL, input="hello", background=True)
    done = until(lambda: (response := client.responses.retrieve(quick.id)).status == "completed" and response)
    assert done.output_text == "You said: hello"
    assert AuditEntry.objects.filter(verb="cancel_run").count() == 1


def test_the_official_client_reads_a_stream_again_from_where_it_was(client):
    stream = client.responses.create(model=MODEL, input="one two three", stream=True, background=True)
    events = [event.to_dict() for event in stream]
    response = events[0]["response"]["id"]

    for start in (None, 0, 3, len(events) - 2):
        more = {} if start is None else {"starting_after": start}
        again = [event.to_dict() for event in client.responses.retrieve(response, stream=True, **more)]
        assert again == events[0 if start is None else start + 1 :]


@pytest.mark.slow
def test_the_official_client_lists_input_items_and_deletes(client):
    first = client.responses.create(model=MODEL, input="one")
    items = [{"role": "user", "content": f"number {n}"} for n in range(25)]
    second = client.responses.create(model=MODEL, input=items, previous_response_id=first.id)

    listed = list(client.responses.input_items.list(second.id, order="asc", limit=7))
    assert [item.content[0].text for item in listed] == [f"number {n}" for n in range(25)]
    assert len({item.id for item in listed}) == 25

    client.responses.delete(first.id)
    for ask in (
        lambda: client.responses.retrieve(first.id),
        lambda: client.responses.delete(first.id),
        lambda: client.responses.cancel(first.id),
        lambda: client.responses.input_items.list(first.id),
    ):
        with pytest.raises(openai.NotFoundError) as gone:
            ask()
        assert gone.value.code == "response_not_found"
    with pytest.raises(openai.BadRequestError) as ended:
        client.responses.create(model=MODEL, input="on", previous_response_id=first.id)
    assert ended.value.code == "previous_response_not_found"
    assert client.responses.create(model=MODEL, input="on", previous_response_id=second.id).status == "completed"


def test_the_official_client_may_include_several_things_in_what_it_reads(client):
    include = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    response = client.responses.create(model=MODEL, input="one")

    assert client.responses.retrieve(response.id, include=include) == response
    assert [*client.responses.input_items.list(response.id, include=include)]
    with client.responses.retrieve(response.id, include=include, stream=True) as events:
        assert list(events)[-1].type == "response.completed"


def test_the_official_client_lists_input_items_whose_ids_repeat_or_are_null(client):
    ids = ["m1", "m1", None, "", 5, None]
    items = [{"role": "user", "content": f"number {n}", "id": id_, "status": None} for n, id_ in enumerate(ids)]
    response = client.responses.create(model=MODEL, input=items)

    for order in ("asc", "desc"):
        pages = client.responses.input_items.list(response.id, order=order, limit=1)
        listed = list(itertools.islice(pages, 10))
        assert [item.content[0].text for item in listed][:: 1 if order == "asc" else -1] == [
            f"number {n}" for n in range(6)
        ]
        assert len({item.id for item in listed}) == 6
        assert {item.status for item in listed} == {"completed"}


def test_a_reference_is_listed_once_and_as_one(desk):
    first = desk.create().json
    id_ = first["output"][0]["id"]
    items = [{"id": id_}, {"type": "item_reference", "id": id_}, {"role": "user", "content": "and?"}]
    second = desk.create(items, previous_response_id=first["id"]).json

    listed = desk.get(f"responses/{second['id']}/input_items?order=asc").json["data"]

    assert listed[0] == {"type": "item_reference", "id": id_}
    assert [item["type"] for item in listed] == ["item_reference", "message"]


def test_the_official_client_lists_models(client):
    listed = [model.id for model in client.models.list()]

    assert listed == [MODEL, "demo"]
    assert client.models.retrieve(MODEL).owned_by == "Stand-ins"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody")
    with pytest.raises(openai.NotFoundError) as unknown:
        client.files.list()
    assert unknown.value.code == "unknown_url"


@needs_document
def test_what_is_unknown_or_not_allowed_is_told_in_the_forms_words(desk):
    agent = tokens.make_token(SYSTEM, "clerk", "agent", agent="Clerk")
    viewer = tokens.make_token(SYSTEM, "viewer", "viewer")
    response = desk.create().json["id"]
    for method, path in UNKNOWN:
        answer = desk.ask(b"", path, method=method)
        assert (answer.status, answer.json["error"]["code"]) == (404, "unknown_url")
        open_responses.check_error(answer.json)
    for method, path, allowed in (
        ("POST", f"responses/{response}", "GET, HEAD, DELETE"),
        ("GET", f"responses/{response}/cancel", "POST"),
        ("DELETE", "models", "GET, HEAD"),
        ("GET", "responses", "POST"),
    ):
        answer = desk.get(path, method)
        assert (answer.status, answer.headers["allow"]) == (405, allowed)
        open_responses.check_error(answer.json)
    for path, method, secret, status in (
        ("models", "GET", "sb_nobody", 401),
        ("models", "GET", agent, 403),
        (f"responses/{response}", "GET", agent, 403),
        (f"responses/{response}", "DELETE", viewer, 403),
        (f"responses/{response}/cancel", "POST", viewer, 403),
        (f"responses/{response}", "GET", viewer, 200),
    ):
        answer = desk.get(path, method, authorization=f"Bearer {secret}")
        assert answer.status == status, (path, method)
        if status > 200:
            open_responses.check_error(answer.json)


@needs_document
def test_a_response_by_id_is_what_was_answered(desk):
    for words in ("hello", "call rain {}", "fail", "cut", "think", "refuse"):
        answered = desk.create(words).json
        stored = desk.get(f"responses/{answered['id']}").json
        assert stored == answered
        open_responses.check_response(stored)


def test_a_response_that_waits_says_for_what(desk):
    held = desk.create("ask", background=True).json
    until(lambda: Run.objects.get().status == "waiting")

    stored = desk.get(f"responses/{held['id']}").json

    assert (stored["status"], stored["incomplete_details"]) == ("in_progress", {"reason": "waiting_for_approval"})
    refused = desk.get(f"responses/{held['id']}", "DELETE")
    assert (refused.status, refused.json["error"]["code"]) == (409, "response_in_progress")


def test_what_was_not_to_be_stored_is_seen_by_its_asker_alone(desk):
    other = tokens.make_token(SYSTEM, "other", "admin")
    response = desk.create(store=False).json["id"]

    assert desk.get(f"responses/{response}").status == 200
    assert desk.get(f"responses/{response}", authorization=f"Bearer {other}").status == 404


def test_a_response_is_deleted_by_its_asker_or_an_admin_and_history_stays(desk):
    people = cast()
    first, second = (desk.create(words).json["id"] for words in ("one", "two"))
    events = Event.objects.order_by("id").values_list("id", "body")
    before = list(events)

    with pytest.raises(NotAllowed):
        cancel_or_delete.delete(people["operator"], first)
    cancel_or_delete.delete(people["admin"], first)
    assert desk.get(f"responses/{second}", "DELETE").json == {"id": second, "object": "response", "deleted": True}

    assert list(events.all())[: len(before)] == before
    deleted = Event.objects.filter(kind="response.deleted").order_by("id")
    assert [json.loads(body)["by"] for body in deleted.values_list("body", flat=True)] == [
        "user:ada",
        "token:asker-operator",
    ]
    audited = AuditEntry.objects.filter(verb="delete_response").values_list("outcome", flat=True)
    assert sorted(audited) == ["done", "done", "refused"]
    rows = list(Response.objects.order_by("id").values())
    list(rebuild())
    assert list(Response.objects.order_by("id").values()) == rows


def test_a_token_revoked_between_the_look_and_the_deed_deletes_and_cancels_nothing(desk):
    done = desk.create().json["id"]
    held = desk.create("hold", background=True).json["id"]
    until(lambda: Run.objects.filter(status="running").exists())
    tokens.revoke_token(SYSTEM, "asker-operator")
    by = token_principal("asker-operator")

    for deed, response in ((cancel_or_delete.delete, done), (cancel_or_delete.cancel, held)):
        with pytest.raises(NotAllowed):
            deed(by, response)

    assert not Event.objects.filter(kind__in=("response.deleted", "run.stopping")).exists()
    stand_in.RELEASED.set()
    until(lambda: not Run.objects.exclude(status="done").exists())


def test_wrong_addresses_and_queries_are_refused(desk):
    response = desk.create().json["id"]
    for path, status in (
        ("responses/resp_1", 404),
        (f"responses/{new_response_id()}", 404),
        ("responses/%00", 404),
        (f"responses/{response}?stream=maybe", 400),
        (f"responses/{response}?starting_after=3", 400),
        (f"responses/{response}?stream=true&starting_after=-1", 400),
        (f"responses/{response}/input_items?limit=0", 400),
        (f"responses/{response}/input_items?limit=101", 400),
        (f"responses/{response}/input_items?order=up", 400),
        (f"responses/{response}/input_items?after=msg_x", 400),
        (f"responses/{response}/input_items?limit=1&limit=2", 400),
    ):
        assert desk.get(path).status == status, path


def test_an_address_is_decoded_once(desk):
    assert "'a%41'" in desk.get("models/a%41").json["error"]["message"]


def test_the_head_of_a_stream_is_answered_at_once(desk):
    held = desk.create("hold", background=True).json["id"]

    answer = desk.get(f"responses/{held}?stream=true", "HEAD")

    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert Run.objects.get().status in ("queued", "running")


def test_an_error_of_ours_is_a_500_in_the_forms_words(desk, monkeypatch):
    def broken(name):
        raise ZeroDivisionError

    monkeypatch.setattr("conversations.asgi.responses.model_list.log_asked.available_models", broken)

    answer = desk.get("models")

    assert (answer.status, answer.json["error"]["type"]) == (500, "server_error")


def test_a_person_who_stops_the_run_is_seen_by_id(desk):
    held = desk.create("hold", background=True).json["id"]
    until(lambda: Run.objects.get().status == "running")
    stop_and_rerun.cancel_run(SYSTEM, Run.objects.get().id)

    until(lambda: desk.get(f"responses/{held}").json["status"] == "cancelled")
