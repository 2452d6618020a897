"""Tokens are remembered within bounds: what is not used for long is forgotten first, what is in use never."""

import asyncio
import time
from contextlib import ExitStack

import pytest

from conversations.access.accounts import tokens
from conversations.asgi import token_auth
from conversations.asgi.token_auth import MAX_TOKENS
from conversations.core.errors import Busy
from conversations.core.principals import SYSTEM
from conversations.core.recently_used import RecentlyUsed
from conversations.import_export.server_client import ServerClient
from tests.support.authenticator import carrying, lets_in
from tests.support.live import Server, until

HOUR = 3600.0
pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_the_least_recently_used_value_makes_room(clock):
    memory = RecentlyUsed(2, HOUR, clock)
    memory.put("a", 1)
    memory.put("b", 2)
    memory.get("a")

    memory.put("c", 3)

    assert (memory.get("a"), memory.get("b"), memory.get("c"), len(memory)) == (1, None, 3, 2)


def test_a_value_goes_an_hour_after_its_last_use(clock):
    memory = RecentlyUsed(9, HOUR, clock)
    memory.put("used", 1)
    memory.put("idle", 2)
    clock.now += HOUR - 1
    memory.get("used")

    clock.now += 1

    assert (memory.get("idle"), memory.get("used"), len(memory)) == (None, 1, 1)


def test_a_held_value_stays_beyond_its_hour_and_in_a_full_memory(clock):
    memory = RecentlyUsed(2, HOUR, clock)
    memory.put("held", 1)
    with memory.hold("held"):
        clock.now += 5 * HOUR
        for key in "xyz":
            memory.put(key, 2)
        assert memory.get("held") == 1
    clock.now += HOUR - 1
    assert memory.get("held") == 1
    clock.now += HOUR
    assert memory.get("held") is None


def test_a_memory_of_held_values_takes_no_more(clock):
    memory = RecentlyUsed(2, HOUR, clock)
    memory.put("a", 1)
    memory.put("b", 2)
    with memory.hold("a"), memory.hold("b"), pytest.raises(Busy, match="2 are in use"):
        memory.put("c", 3)

    assert (memory.get("a"), memory.get("b"), memory.get("c")) == (1, 2, None)


def test_tokens_given_out_are_bounded_and_a_running_import_keeps_its_own(authenticator):
    importing, unused = authenticator.give("importing"), authenticator.give("unused")
    with authenticator.holding(carrying(importing)):
        last = [authenticator.give(f"n{n}") for n in range(2 * MAX_TOKENS)][-1]

        assert len(authenticator._import_bearers) == MAX_TOKENS
        assert (lets_in(authenticator, importing), lets_in(authenticator, unused), lets_in(authenticator, last)) == (
            True,
            False,
            True,
        )


def test_when_all_tokens_given_out_are_in_use_no_more_is_given(authenticator):
    with ExitStack() as held:
        for n in range(MAX_TOKENS):
            held.enter_context(authenticator.holding(carrying(authenticator.give(f"n{n}"))))
        with pytest.raises(Busy, match="1,000 are in use"):
            authenticator.give("late")


def test_a_token_given_out_ends_when_unused_for_an_hour(authenticator, clock):
    authenticator._import_bearers = RecentlyUsed(MAX_TOKENS, token_auth.IDLE_S, clock)
    secret = authenticator.give("play")
    clock.now += HOUR - 1
    assert lets_in(authenticator, secret)

    clock.now += HOUR

    assert not lets_in(authenticator, secret)


@pytest.mark.slow
def test_guesses_are_forgotten_and_push_no_good_token_out(authenticator, monkeypatch):
    secret = tokens.make_token(SYSTEM, "ci", "admin")
    monkeypatch.setattr(token_auth, "FRESH", 60.0)
    lookups = []
    submit = authenticator._lookups.submit
    monkeypatch.setattr(authenticator._lookups, "submit", lambda *work: lookups.append(work) or submit(*work))
    assert lets_in(authenticator, secret)

    async def guess():
        for n in range(MAX_TOKENS + 500):
            assert await authenticator.look_up(f"sb_guess-{n}") is None
        return await authenticator.caller(carrying(secret), "publish")

    asyncio.run(guess())

    assert len(lookups) == 1 + MAX_TOKENS + 500
    assert len(authenticator._accepted) + len(authenticator._refused) == 1 + MAX_TOKENS


def test_a_revoked_token_is_remembered_as_refused(authenticator, monkeypatch):
    secret = tokens.make_token(SYSTEM, "ci", "admin")
    assert lets_in(authenticator, secret)
    tokens.revoke_token(SYSTEM, "ci")
    until(lambda: not lets_in(authenticator, secret), what="the token to be refused")

    assert len(authenticator._accepted) == 0
    monkeypatch.setattr(token_auth, "FRESH", 60.0)
    monkeypatch.setattr(authenticator, "_ask", None)
    assert not lets_in(authenticator, secret)


@pytest.mark.thorough
def test_a_recording_goes_on_after_a_pause_in_which_its_token_ended(tmp_path):
    server = Server(tmp_path).start()
    try:
        with ServerClient.open(server.data_dir, "play") as door:
            door._token = "ended"  # as after an unused hour
            door.publish("stream:c", {"event": "weather", "conversation_id": "c"}, f"id-{time.time_ns()}")

            principal = server.database().execute("SELECT principal FROM conversations_event").fetchall()
    finally:
        server.terminate()

    assert principal == [("import:play",)]
