"""A session cookie that the server did not make is none, whatever it holds."""

import pytest
from django.test import Client

from conversations.access import authentication
from dashboard.session_store import SessionStore

pytestmark = pytest.mark.django_db
KEYS = ["\0aaaaaaaaaaaa", "a" * 41, "aaaa aaaa aaaa", "ä" * 12, "a" * 7, "a" * 32 + "\n"]


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_was_not_made_here_is_not_looked_up(django_assert_num_queries, key):
    with django_assert_num_queries(0):
        assert authentication.caller_from_session(key) is None

    assert SessionStore(key).session_key is None


def test_a_key_that_was_made_here_is_looked_up():
    made = SessionStore()
    made.create()

    assert SessionStore(made.session_key).exists(made.session_key)
    assert SessionStore(made.session_key).session_key == made.session_key


@pytest.mark.parametrize(("path", "status"), [("/", 302), ("/sign-in/", 200), ("/api/v1/conversations", 401)])
def test_a_cookie_with_nul_is_a_strangers(path, status):
    answer = Client(HTTP_COOKIE=r'switchboard_session="\000aaaaaaaaaaaa"').get(path)

    assert answer.status_code == status
