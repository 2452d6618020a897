"""Whose access has ended, and with which close code: asked once a second for all open sockets (law H)."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.utils import timezone

from conversations.access import authentication
from conversations.access.accounts import tokens
from conversations.access.authentication import NOT_ALLOWED, RECONNECT, SIGNED_OUT
from conversations.core.principals import SYSTEM
from conversations.models import Role, Token, User
from tests.support.cast import client_of

pytestmark = pytest.mark.django_db

ENDS = {
    "the session is gone": (lambda: Session.objects.all().delete(), SIGNED_OUT),
    "the session is over": (lambda: Session.objects.update(expire_date=timezone.now() - timedelta(1)), SIGNED_OUT),
    "another password": (lambda: User.objects.update(password="another"), SIGNED_OUT),
    "signed out everywhere": (lambda: User.objects.update(session_salt="another"), SIGNED_OUT),
    "deactivated": (lambda: User.objects.update(is_active=False), SIGNED_OUT),
    "one role of two": (lambda: Role.objects.filter(name="viewer").delete(), RECONNECT),
    "all roles": (lambda: Role.objects.all().delete(), NOT_ALLOWED),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_persons_access_ends_with(team, how):
    end, code = ENDS[how]
    otto = team["operator"]
    Role.objects.create(user=otto, name="viewer")
    caller = authentication.caller_from_session(client_of(otto).cookies[settings.SESSION_COOKIE_NAME].value)
    assert caller is not None
    assert authentication.revoked([caller]) == {}

    end()

    assert authentication.revoked([caller]) == {caller: code}


def test_a_tokens_access_ends_when_it_is_revoked_although_its_name_is_used_again():
    caller = authentication.caller_from_token(tokens.make_token(SYSTEM, "ci", "viewer"))
    other = authentication.caller_from_token(tokens.make_token(SYSTEM, "desk", "viewer"))
    assert authentication.revoked([caller, other]) == {}

    tokens.revoke_token(SYSTEM, "ci")
    assert authentication.revoked([caller, other]) == {caller: NOT_ALLOWED}
    tokens.make_token(SYSTEM, "ci", "viewer")

    assert Token.objects.filter(name="ci", revoked_at=None).exists()
    assert authentication.revoked([caller, other]) == {caller: NOT_ALLOWED}
