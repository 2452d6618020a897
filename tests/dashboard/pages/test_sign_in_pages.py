"""Signing in by a password or a link, as a browser sees it."""

import re

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from conversations.access.accounts import people, sign_in, sign_in_links
from conversations.core.errors import NotAllowed
from conversations.core.principals import SYSTEM
from conversations.events import log
from tests.support.cast import PASSWORD, client_of
from tests.support.visits import BY_HAND, entries, link_for, try_in, who, words

pytestmark = pytest.mark.django_db


def test_the_right_password_lets_in(maria):
    client = client_of()

    response = try_in(client)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert who(client) == "maria"
    assert entries(verb="sign_in") == [("user:maria", "sign_in", "user:maria", "done")]
    cookie = response.cookies["switchboard_session"]
    assert (cookie["httponly"], cookie["samesite"]) == (True, "Strict")


def test_signing_in_changes_the_session_key(maria):
    client = client_of()
    client.get("/sign-in/")
    session = client.session
    session["planted"] = True
    session.save()
    client.cookies["switchboard_session"] = session.session_key

    try_in(client)

    assert client.cookies["switchboard_session"].value != session.session_key
    assert not Session.objects.filter(pk=session.session_key).exists()


@pytest.mark.parametrize(
    ("path_asked", "path"),
    [
        ("/people/?x=1", "/people/?x=1"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("evil", "/"),
        ("", "/"),
    ],
)
def test_after_signing_in_only_own_paths_are_gone_to(maria, path_asked, path):
    assert try_in(client_of(), next=path_asked)["Location"] == path


def test_a_wrong_password_says_how_many_tries_are_left(maria):
    client = client_of()

    left = [re.search(r"\d attempts?", words(try_in(client, "wrong"))).group() for _ in range(4)]

    assert left == ["4 attempts", "3 attempts", "2 attempts", "1 attempt"]
    assert who(client) is None


def test_the_page_begins_at_the_name_and_after_a_wrong_password_at_the_password(maria):
    first, again = client_of().get("/sign-in/"), try_in(client_of(), "wrong")

    inputs = [re.findall(r'<input class="input"[^>]*>', words(page)) for page in (first, again)]
    assert ["autofocus" in tag for tags in inputs for tag in tags] == [True, False, False, True]
    assert ['aria-invalid="true"' in tag for tags in inputs for tag in tags] == [False, False, False, True]


def test_an_unknown_name_gets_the_same_answer(maria):
    known, unknown = try_in(client_of(), "wrong"), try_in(client_of(), "wrong", name="nobody")

    strip = re.compile(r'value="[^"]*"|data-\w+="[^"]*"|nonce')
    assert strip.sub("", words(known)) == strip.sub("", words(unknown))
    assert known.status_code == unknown.status_code == 422


def test_the_fifth_wrong_password_locks_out_until_a_time_told(maria):
    client = client_of()

    for _ in range(5):
        response = try_in(client, "wrong")

    assert response.status_code == 429
    assert response["Retry-After"].endswith("GMT")
    assert re.search(r"Try again after \d\d:\d\d:\d\d UTC", words(response))
    assert try_in(client).status_code == 429  # the right one too
    assert who(client) is None
    assert [entry[1:] for entry in entries(outcome="refused")] == [
        ("sign_in", "user:maria", "refused"),
        ("lock_out", "user:maria", "refused"),
    ]


def test_tries_while_locked_out_do_not_prolong_it(maria):
    client = client_of()
    times = [try_in(client, "wrong").headers.get("Retry-After") for _ in range(8)]

    assert times[4] == times[-1] is not None


def test_a_lock_out_ends(maria):
    client = client_of()
    for _ in range(5):
        try_in(client, "wrong")
    AccessAttempt.objects.update(attempt_time=timezone.now() - timezone.timedelta(minutes=16))

    assert try_in(client).status_code == 302


def test_a_lock_out_of_one_name_spares_others(maria):
    people.create_person(SYSTEM, "tomas", ["viewer"], password=PASSWORD)
    for _ in range(5):
        try_in(client_of(), "wrong")

    assert try_in(client_of(), name="tomas").status_code == 302


def test_a_deactivated_person_is_not_let_in(maria):
    people.deactivate(SYSTEM, "maria")

    assert try_in(client_of()).status_code == 422


def test_a_name_stays_as_it_is_written_in_a_message(maria):
    people.deactivate(SYSTEM, "maria")

    with pytest.raises(NotAllowed) as refused:
        sign_in.sign_in(maria, "password", begin=lambda: None)

    assert refused.value.sentence == "The account maria is deactivated."


def test_the_first_link_leads_to_the_demo_while_it_is_all_there_is(team):
    opened = {"event": "conversation.opened", "title": "A demo", "demo": True}
    log.append([log.from_internal("demo-1", opened, SYSTEM)])

    assert client_of().get(link_for("vera"), headers=BY_HAND)["Location"] == "/conversations/demo-1/"

    log.append([log.from_internal("real", {"event": "log", "text": "somebody is here"}, SYSTEM)])
    assert client_of().get(link_for("otto"), headers=BY_HAND)["Location"] == "/"


@pytest.mark.parametrize("site", [BY_HAND, BY_HAND | {"Sec-Fetch-Site": "same-origin"}])
def test_a_link_opened_by_hand_signs_in(team, site):
    client = client_of()

    response = client.get(link_for("vera"), headers=site)

    assert (response.status_code, response["Location"]) == (302, "/")
    assert "You have no password yet" in client.get("/").content.decode()
    assert who(client) == "vera"
    assert ("user:vera", "sign_in", "user:vera", "done") in entries()


@pytest.mark.parametrize(
    "ahead",
    [
        {},  # a chat's preview of the link says nothing of itself
        BY_HAND | {"Sec-Fetch-Site": "cross-site"},
        BY_HAND | {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "no-cors"},
        BY_HAND | {"Sec-Purpose": "prefetch;prerender"},
        {"Purpose": "prefetch"},
    ],
)
def test_a_link_opened_by_anything_else_waits_for_a_click(team, ahead):
    client, link = client_of(), link_for("vera")

    response = client.get(link, headers=ahead)

    assert response.status_code == 200
    assert who(client) is None
    secret = re.search(r'name="t" value="([^"]+)"', words(response)).group(1)
    client.post("/sign-in/link/", {"t": secret})
    assert who(client) == "vera"


def test_a_head_request_leaves_the_link_alone(team):
    link = link_for("vera")

    client_of().head(link)

    assert client_of().get(link, headers=BY_HAND).status_code == 302


def test_the_click_is_protected_like_every_form(team):
    client = Client(enforce_csrf_checks=True, headers={"Host": "127.0.0.1:8000"})

    assert client.post("/sign-in/link/", {"t": sign_in_links.make_link(SYSTEM, "vera")}).status_code == 403


def test_a_used_link_says_so(team):
    link = link_for("vera")
    client_of().get(link, headers=BY_HAND)

    response = client_of().get(link, headers=BY_HAND)

    assert response.status_code == 409
    assert "was already used" in words(response)


@pytest.mark.parametrize("address", ["/sign-in/link/?t=made-up", "/sign-in/link/"])
def test_an_unknown_link_says_so(team, address):
    response = client_of().get(address, headers=BY_HAND)

    assert response.status_code == 404
    assert "This link is not valid" in words(response)


def test_a_link_replaces_whoever_was_signed_in(team):
    client = client_of(team["admin"])

    client.get(link_for("vera"), headers=BY_HAND)

    assert who(client) == "vera"


def test_no_secret_reaches_the_log_the_audit_or_the_throttle(maria, caplog):
    secret = "planted secret hidden-secret-471108150"
    client = client_of()
    link = link_for("maria")
    client.get(link, headers=BY_HAND), client.get(link, headers=BY_HAND)  # the second is refused
    client.post("/account/", {"new": secret})
    client.post("/account/", {"old": "wrong " + secret, "new": "next " + secret})
    try_in(client_of(), "wrong " + secret)
    try_in(client_of(), secret, name=secret)
    client_of().get("/people/", headers={"Authorization": f"Bearer sb_{secret}"})

    stored = [str(list(model.objects.values())) for model in apps.get_models() if model is not AccessAttempt]
    attempts = str(list(AccessAttempt.objects.values()))
    assert AccessAttempt.objects.count() == 2
    assert "hidden-secret-471108150" not in attempts + "".join(stored) + caplog.text
    assert link.partition("t=")[2] not in attempts + "".join(stored) + caplog.text
