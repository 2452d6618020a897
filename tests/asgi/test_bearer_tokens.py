"""Tokens: kept as digests, found by their secret, revoked."""

from datetime import timedelta

import pytest

from conversations.access.accounts import one_time_secret, tokens
from conversations.core.errors import Conflict, Invalid
from conversations.core.principals import SYSTEM
from conversations.models import Token
from tests.support.cast import audit_summary, last_entry

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(team):
    return team["admin"]


def test_a_token_is_found_by_its_secret_only(admin):
    words = tokens.make_token(admin, "ci", "viewer")

    token = tokens.token_of(words)
    assert (token.name, token.role, token.agent) == ("ci", "viewer", "")
    assert words.startswith("sb_")
    assert Token.objects.get().digest == one_time_secret.digest(words)
    assert tokens.token_of(words[:-1]) is None
    assert tokens.token_of("") is None
    assert audit_summary(last_entry()) == ("user:ada", "make_token", "token:ci", "done")


def test_the_use_of_a_token_is_noted_at_most_each_minute(admin, django_assert_num_queries):
    words = tokens.make_token(admin, "ci", "viewer")
    tokens.token_of(words)
    noted = Token.objects.get().last_used_at

    with django_assert_num_queries(1):
        tokens.token_of(words)
    assert Token.objects.get().last_used_at == noted

    Token.objects.update(last_used_at=noted - timedelta(minutes=2))
    tokens.token_of(words)
    assert Token.objects.get().last_used_at >= noted


def test_a_revoked_token_is_not_found_and_its_name_is_free_again(admin):
    words = tokens.make_token(admin, "ci", "viewer")
    with pytest.raises(Conflict, match="exists"):
        tokens.make_token(admin, "ci", "viewer")

    tokens.revoke_token(admin, "ci")

    assert tokens.token_of(words) is None
    with pytest.raises(Conflict, match="token ci is already revoked, by user:ada"):
        tokens.revoke_token(SYSTEM, "ci")
    assert tokens.token_of(tokens.make_token(admin, "ci", "operator")).role == "operator"


def test_an_agents_token_speaks_for_its_name_unless_told(admin):
    token = tokens.token_of(tokens.make_token(admin, "Dialogue", "agent"))
    two = tokens.token_of(tokens.make_token(admin, "robot", "agent", agent="Format Coordinator"))

    assert (token.agent, two.agent) == ("Dialogue", "Format Coordinator")
    with pytest.raises(Invalid, match="only tokens with the role agent"):
        tokens.make_token(admin, "ci", "viewer", agent="Dialogue")
