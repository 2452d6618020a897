"""An id with a NUL, which no database holds and PostgreSQL refuses to look up, is an error of whoever sends it."""

import pytest

from conversations.access.authentication import Caller
from conversations.asgi import event_feed
from conversations.asgi.agui import thread_stream
from conversations.asgi.agui.thread_encoder import ThreadCursor
from conversations.coding_agents import hooks
from conversations.core.errors import Invalid, NotFound
from conversations.core.principals import SYSTEM

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_event_feed_of_a_conversation():
    with pytest.raises(Invalid, match="must be a conversation's id"):
        event_feed._read_request({"query_string": b"conversation=a%00b", "headers": []})


def test_the_runs_of_a_thread():
    with pytest.raises(NotFound, match="there is no conversation"):
        thread_stream._place(Caller(SYSTEM, frozenset()), "a\0b", ThreadCursor(0), "")


@pytest.mark.parametrize("field", ["session_id", "hook_event_name"])
def test_a_hook(field):
    body = {"session_id": "a", "hook_event_name": "Stop"} | {field: "a\0b"}

    with pytest.raises(Invalid) as refused:
        hooks.read("claude-code", body, "Desk")

    assert refused.value.field == field
