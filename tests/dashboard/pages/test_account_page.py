"""One's account: signing out, the password, where one is signed in."""

import pytest
from django.contrib.sessions.models import Session

from conversations.access.accounts import sign_in
from conversations.models import User
from tests.support.cast import PASSWORD, client_of
from tests.support.visits import BY_HAND, entries, link_for, try_in, who, words

pytestmark = pytest.mark.django_db


def test_signing_out_ends_the_session(team):
    client = client_of(team["viewer"])
    key = client.cookies["switchboard_session"].value

    client.post("/sign-out/")

    assert who(client) is None
    assert not Session.objects.filter(pk=key).exists()
    assert entries() == [("user:vera", "sign_out", "user:vera", "done")]


@pytest.mark.parametrize("page", ["/sign-out/", "/sign-out-everywhere/"])
def test_a_mere_visit_signs_nobody_out(team, page):
    client = client_of(team["viewer"])

    assert client.get(page).status_code == 405
    assert who(client) == "vera"


def test_signing_out_everywhere_ends_every_session(team):
    here, there, other = client_of(team["viewer"]), client_of(team["viewer"]), client_of(team["operator"])

    here.post("/sign-out-everywhere/")

    assert (who(here), who(there), who(other)) == (None, None, "otto")


def test_a_new_password_keeps_this_session_and_ends_the_others(maria):
    here, there = client_of(), client_of()
    try_in(here), try_in(there)

    response = here.post("/account/", {"old": PASSWORD, "new": "another long secret"})

    assert response["Location"] == "/account/?saved=password"
    assert (who(here), who(there)) == ("maria", None)
    assert try_in(client_of(), "another long secret").status_code == 302


def test_the_present_password_is_asked_for(maria):
    client = client_of()
    try_in(client)

    response = client.post("/account/", {"old": "wrong", "new": "another long secret"})

    assert response.status_code == 422
    assert "not your current password" in words(response)
    assert User.objects.get(username="maria").check_password(PASSWORD)


def test_guessing_the_present_password_is_throttled(maria):
    client = client_of()
    try_in(client)

    answers = [client.post("/account/", {"old": "wrong", "new": "another long secret"}).status_code for _ in range(6)]

    assert answers == [422, 422, 422, 422, 429, 429]


def test_after_a_link_the_forgotten_password_is_not_asked_for(maria):
    client = client_of()
    client.get(link_for("maria"), headers=BY_HAND)

    client.post("/account/", {"new": "another long secret"})

    assert User.objects.get(username="maria").check_password("another long secret")


def test_a_weak_new_password_is_refused(team):
    client = client_of(team["viewer"])

    response = client.post("/account/", {"new": "short"})

    assert response.status_code == 422
    assert "too short" in words(response)


def test_a_person_without_a_password_is_told_to_set_one(team):
    client = client_of(team["viewer"])
    assert "Set one now" in words(client.get("/account/"))

    client.post("/account/", {"new": PASSWORD})

    assert "Set one now" not in words(client.get("/account/"))


def test_the_account_lists_where_one_is_signed_in(maria):
    here, there = client_of(), client_of()
    here.get(
        link_for("maria"), headers=BY_HAND | {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0"}
    )
    there.get(link_for("maria"), headers=BY_HAND | {"User-Agent": "<b>robot</b>"})

    response = here.get("/account/")

    assert response.content.decode().count('<span class="tag">this browser</span>') == 1
    assert "Firefox on Linux" in words(response)
    assert "&lt;b&gt;robot&lt;/b&gt;" in response.content.decode()
    assert len(list(sign_in.devices_of(maria))) == 2
