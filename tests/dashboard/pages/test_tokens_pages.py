"""The admin's page of tokens: made, shown once, found, revoked; nobody else gets in."""

import re

import pytest

from conversations.access.accounts import tokens
from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry, Token
from tests.support.cast import client_of
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db

SECRET = re.compile(r"sb_[\w-]{40,}")


def make(client, name="robot", role="agent", agent="", **more):
    return client.post("/tokens/", {"name": name, "role": role, "agent": agent} | more)


def test_a_token_may_read_the_page_and_make_none():
    secret = tokens.make_token(SYSTEM, "ci", "admin")
    bearer = {"Authorization": f"Bearer {secret}"}

    assert client_of().get("/tokens/", headers=bearer).status_code == 200
    assert client_of().post("/tokens/", {"name": "x", "role": "admin"}, headers=bearer).status_code == 403
    assert Token.objects.count() == 1


def test_a_secret_is_shown_once_and_works(admin):
    response = make(admin, "robot", "agent", " Dialogue ")

    secret = SECRET.search(response.content.decode())
    assert secret
    assert response["Cache-Control"] == "no-store"
    token = tokens.token_of(secret[0])
    assert (token.name, token.role, token.agent, token.created_by) == ("robot", "agent", "Dialogue", "user:ada")
    assert not SECRET.search(admin.get("/tokens/").content.decode())
    entry = AuditEntry.objects.get(verb="make_token")
    assert (entry.principal, entry.target, entry.outcome) == ("user:ada", "token:robot", "done")
    assert secret[0] not in entry.correlation


def test_sending_the_form_again_shows_no_second_secret(admin):
    make(admin)

    again = make(admin)

    assert (again.status_code, SECRET.search(again.content.decode())) == (409, None)
    assert "Token robot already exists; revoke it first" in text_of(again)


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"name": ""}, "1 to 150 letters"),
        ({"name": "a b"}, "1 to 150 letters"),
        ({"name": "<img src=x>"}, "1 to 150 letters"),
        ({"role": "emperor"}, "Must be one of agent, telemetry, viewer, operator, approver, auditor, admin; got"),
        ({"role": "viewer", "agent": "Dialogue"}, "Only tokens with the role agent"),
        ({"agent": "x" * 201}, "at most 200 characters"),
    ],
)
def test_what_does_not_fit_is_told_beside_its_field(admin, form, why):
    response = make(admin, **form)

    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.content.decode()
    assert why in text_of(response)
    assert "<img" not in response.content.decode()
    assert not Token.objects.exists()


def test_a_revoked_one_stops_working_and_is_folded_away(admin):
    secret = tokens.make_token(SYSTEM, "ci", "viewer")

    response = admin.post("/tokens/revocations/", {"name": "ci"}, follow=True)

    assert "The token ci is revoked" in text_of(response)
    assert "No tokens yet" in text_of(response)
    assert re.search(r"Revoked 1 .*ci", text_of(response))
    assert tokens.token_of(secret) is None
    assert AuditEntry.objects.get(verb="revoke_token").principal == "user:ada"


def test_the_second_to_revoke_reads_who_was_first(admin):
    tokens.make_token(SYSTEM, "ci", "viewer")
    tokens.revoke_token(SYSTEM, "ci")

    response = admin.post("/tokens/revocations/", {"name": "ci"})

    assert response.status_code == 409
    assert "Token ci is already revoked, by system" in text_of(response)
    assert admin.post("/tokens/revocations/", {"name": "nobody"}).status_code == 404


def test_a_made_up_address_announces_no_revocation(admin):
    tokens.make_token(SYSTEM, "ci", "viewer")

    assert "is revoked" not in text_of(admin.get("/tokens/?revoked=ci"))
    assert "is revoked" not in text_of(admin.get("/tokens/?revoked=nobody"))


def test_tokens_are_found_by_name_or_agent(admin):
    tokens.make_token(SYSTEM, "robot", "agent", agent="Dialogue")
    tokens.make_token(SYSTEM, "ci", "viewer")
    tokens.make_token(SYSTEM, "old", "viewer")
    tokens.revoke_token(SYSTEM, "old")

    text = text_of(admin.get("/tokens/?q=dialog"))
    assert "robot" in text
    assert "ci viewer" not in text
    assert "old viewer" in text_of(admin.get("/tokens/?q=old"))
    assert "No token matches" in text_of(admin.get("/tokens/?q=nowhere"))
    assert "2 active" in text_of(admin.get("/tokens/"))


def test_last_used_is_told(admin):
    secret = tokens.make_token(SYSTEM, "ci", "viewer")
    assert "never" in text_of(admin.get("/tokens/"))

    client_of().get("/", headers={"Authorization": f"Bearer {secret}"})

    assert "never" not in text_of(admin.get("/tokens/"))


def test_names_of_every_script_and_hidden_ones_are_fit_to_be_seen(admin):
    make(admin, "مراقب", "agent", "a\u202eb")

    page = admin.get("/tokens/").content.decode()

    assert "<bdi>مراقب</bdi>" in page
    assert "a[U+202E]b" in page
    assert "\u202e" not in page
