"""Who gets in where: every route and socket operation, for everybody (§3.7). A route without a row fails.

A row says who may; everybody else is refused: nobody with 401 or the sign-in page, others with 403.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from conversations.models.people import ROLES
from dashboard.pages import errors
from tests.support.access import addresses, views
from tests.support.access_table import (
    AGENT,
    ANYBODY,
    AUDITING,
    CELLS,
    CHANGES,
    DOOR_CELLS,
    DOORS,
    EVERYONE,
    METHODS,
    PROGRAMS,
    SIGNED_IN,
    TABLE,
    TELEMETRY,
    filled,
)
from tests.support.cast import cast, client_of
from tests.support.doors import Caller, ask, message_payload
from tests.support.live import Server
from tests.support.tiers import IS_SHORT


def is_refused(status: int) -> bool:
    """Tell a refusal from an answer to somebody who may; wrong input and absent things are answers."""
    return status in (401, 403)


def test_every_route_has_a_row():
    assert set(addresses()) == set(TABLE)


def test_a_row_tells_every_method_of_its_view():
    for address, _, view in views():
        client = Client(headers={"Host": "127.0.0.1:8000"})
        taken = {method for method in METHODS if method in _allowed(view, client)}
        assert taken == set(TABLE[address]), address


def _allowed(view: object, client: Client) -> str:
    """Ask a view, past all that guards it, which methods it takes."""
    from django.http import HttpRequest

    request = HttpRequest()
    request.method = "TRACE"
    inner = view
    while hasattr(inner, "__wrapped__") and not _tells_methods(inner):
        inner = inner.__wrapped__
    return str(inner(request)["Allow"])  # type: ignore[operator]


def _tells_methods(view: object) -> bool:
    return "request_method_list" in getattr(getattr(view, "__code__", None), "co_freevars", ())


@pytest.fixture
def people(db: None) -> dict[str, Client]:
    """A browser of everybody: of each role, of a person without any, and of nobody."""
    made = {role: client_of(person) for role, person in cast().items()}
    out = client_of(None)
    out.cookies["sessionid"] = "of-a-session-that-is-over"
    return made | {"nobody": client_of(None), "signed out": out}


@contextmanager
def undone(clients: Iterable[Client]) -> Iterator[None]:
    """Undo what requests change: rows, and cookies, one of which ends with a session."""
    before = [(client, dict(client.cookies)) for client in clients]
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    for client, cookies in before:
        client.cookies.clear()
        client.cookies.update(cookies)


def wrong_for_people(people: dict[str, Client], address: str, method: str) -> Iterator[tuple[object, ...]]:
    """Make a request as everybody; yield the answers that are not what the table says."""
    row = TABLE[address][method]
    for who, client in people.items():
        answer = client.generic(method, filled(address), content_type="application/json")
        to_sign_in = answer.status_code == 302 and answer["Location"].startswith("/sign-in/")
        may = ANYBODY in row or who in row or (who == "" and SIGNED_IN in row)
        if who in ("nobody", "signed out") and ANYBODY not in row:
            is_right = answer.status_code == 401 or to_sign_in
        else:
            is_right = not is_refused(answer.status_code) if may else answer.status_code == 403
            is_right = is_right and (not to_sign_in or address.startswith("/sign-"))
        if not is_right or answer.status_code >= 500:
            yield method, address, who, answer.status_code


@pytest.mark.slow
@pytest.mark.any_database
def test_people_get_in_where_their_role_says(people, monkeypatch):
    monkeypatch.setattr(errors, "_page", lambda request, status, *_, **__: HttpResponse(status=status))
    wrong = []
    for address, method in CELLS:
        with undone(people.values()):
            wrong += wrong_for_people(people, address, method)

    assert wrong == []


def test_a_viewer_and_who_is_not_signed_in_get_in_where_the_table_says(people, monkeypatch):
    monkeypatch.setattr(errors, "_page", lambda request, status, *_, **__: HttpResponse(status=status))
    least = {who: people[who] for who in ("viewer", "nobody")}
    wrong = []
    for address, method in CELLS:
        with undone(least.values()):
            wrong += wrong_for_people(least, address, method)

    assert wrong == []


@pytest.mark.slow
@pytest.mark.any_database
@pytest.mark.parametrize("how", ["without a token", "from another site", "from a neighbour"])
def test_a_change_from_elsewhere_is_refused(how, db):
    client = Client(headers={"Host": "127.0.0.1:8000"}, enforce_csrf_checks=how == "without a token")
    client.force_login(cast()["admin"], backend="django.contrib.auth.backends.ModelBackend")
    site = {"from another site": "cross-site", "from a neighbour": "same-site"}.get(how)
    headers = {"Sec-Fetch-Site": site} if site else {}
    wrong = []

    for address, method in CHANGES:
        with undone([client]):
            answer = client.generic(method, filled(address), headers=headers)
        if answer.status_code != 403:
            wrong.append((method, address, answer.status_code))

    assert wrong == []


# Over HTTP, by bearer: the same table, and the doors.


@pytest.fixture(scope="module")
def bearers(door_server: Server, callers: dict[str, Caller]) -> dict[str, Caller]:
    """A token of each role, an agent's, a revoked one, and one that never was."""
    callers["admin"].publish("chat:mine", message_payload("mine", "x", recipient="agent:Desk"))
    callers["admin"].publish("chat:theirs", message_payload("theirs", "x"))
    return {role: callers[role] for role in ROLES} | {
        AGENT: callers["desk"],
        TELEMETRY: callers["telemetry"],
        "revoked": callers["revoked"],
        "unknown": Caller(door_server, "sb_" + "x" * 43),
    }


def asking(bearers: dict[str, Caller], address: str) -> dict[str, Caller]:
    """Return who asks there: at a door everybody. In the quick tier a page or endpoint is asked by the least and the
    most of the roles, since what each of them may is told by the table of people above and by `test_rights`.
    """
    if address in DOORS or not IS_SHORT:
        return bearers
    return {who: caller for who, caller in bearers.items() if who not in ("operator", "approver", "auditor", "revoked")}


def wrong_for_tokens(bearers: dict[str, Caller], address: str, method: str) -> Iterator[tuple[object, ...]]:
    """Make a request by each token; yield the answers that are not what the table says."""
    row = TABLE[address][method]
    is_page = not address.startswith("/api/") and address not in DOORS
    body = b'{"topic":"stream:mine","payload":{}}' if address == "/api/v1/publish" else b"{}"
    for who, caller in asking(bearers, address).items():
        answer = caller.ask(method, filled(address), None if method == "GET" else body)
        # A token reads pages and changes nothing there; markers and accounts are of people.
        of_people = ("/account/", "/api/v1/read-markers", "/api/v1/conversations/{cid}/presence")
        is_of_people = address in of_people or (is_page and method == "POST")
        may = (ANYBODY in row or who in row) and not is_of_people
        if ANYBODY in row and address in DOORS:
            is_right = True
        elif who in ("revoked", "unknown"):
            is_right = answer.status == 401
        else:
            refusal = 401 if address == "/api/v1/door" else 403  # that one takes no token of ours
            is_right = not is_refused(answer.status) if may else answer.status == refusal
        if not is_right or answer.status >= 500:
            yield method, address, who, answer


@pytest.mark.slow
def test_tokens_get_in_where_their_role_says(bearers):
    wrong = [case for cell in (*CELLS, *DOOR_CELLS) for case in wrong_for_tokens(bearers, *cell)]

    assert wrong == []


@pytest.mark.slow
def test_a_door_takes_no_cookie_and_nobody(door_server):
    wrong = []
    for address, method in DOOR_CELLS:
        for headers in ({}, {"Cookie": "sessionid=x"}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}):
            answer = ask(door_server, method, filled(address), None if method == "GET" else b"{}", **headers)
            if (answer.status in (401, 403)) is (ANYBODY in TABLE[address][method]):
                wrong.append((method, address, headers, answer))

    assert wrong == []


def test_an_agents_token_gets_in_nowhere_as_another(bearers):
    agent = bearers[AGENT]
    theirs = {"cid": "theirs", "topic": "stream:theirs"}
    for address, row in TABLE.items():
        if AGENT in row.get("GET", ()) and "{" in address:
            assert agent.get(filled(address)).status == 200, address
            assert agent.get(filled(address, **theirs)).status == 403, address
    for form, own in (("markdown", 200), ("text", 200), ("trace", 200), ("jsonl", 403)):
        path = "/api/v1/conversations/{}/export?format={}"
        assert (agent.get(path.format("mine", form)).status, agent.get(path.format("theirs", form)).status) == (
            own,
            403,
        )
    assert agent.publish("stream:mine", {"sender": "agent:Desk"}).status == 201
    assert agent.publish("stream:mine", {"sender": "agent:Other"}).status == 403


# The socket: who may open it, and what each may ask of it.

OPERATIONS = {
    ("subscribe", "stream:mine"): PROGRAMS,
    ("subscribe", "stream:theirs"): EVERYONE,
    ("subscribe", "stream:nowhere"): EVERYONE,
    ("subscribe", "fleet"): EVERYONE,
    ("subscribe", "approvals"): EVERYONE,
    ("subscribe", "audit"): AUDITING,
    ("unsubscribe", "stream:mine"): PROGRAMS,
    ("unsubscribe", "fleet"): PROGRAMS,
    ("unsubscribe", "approvals"): PROGRAMS,
    ("unsubscribe", "audit"): PROGRAMS,
}


@pytest.mark.parametrize(("op", "topic"), OPERATIONS)
def test_the_socket_does_for_each_what_the_table_says(bearers, op, topic):
    for who, caller in bearers.items():
        may = who in OPERATIONS[op, topic]
        assert _is_answered(caller, op, topic) is may, who


def _is_answered(caller: Caller, op: str, topic: str) -> bool:
    """Ask something of the socket; tell whether it was done."""
    address = f"ws://127.0.0.1:{caller.server.port}/ws/"
    head = {"Authorization": f"Bearer {caller.token}"}
    try:
        with closing(connect(address, additional_headers=head, compression=None)) as wire:
            wire.send(json.dumps({"op": op, "topic": topic}))
            if op == "unsubscribe":  # it says nothing: what is asked next is answered
                topic = "stream:mine"
                wire.send(json.dumps({"op": "subscribe", "topic": topic}))
            frame = json.loads(wire.recv(60))
            return frame["t"] != "error" and frame["topic"] == topic
    except ConnectionClosed as closed:
        # None: the second frame crossed the hang-up
        return closed.rcvd is not None and closed.rcvd.code not in (4401, 4403)


@pytest.mark.parametrize("origin", [None, "https://elsewhere.example", "null"])
def test_the_socket_is_closed_to_other_sites_and_to_nobody(door_server, origin):
    address = f"ws://127.0.0.1:{door_server.port}/ws/"

    with pytest.raises(InvalidStatus) as refused:
        connect(address, origin=origin, compression=None)

    assert refused.value.response.status_code == 403
