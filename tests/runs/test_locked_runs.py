"""A conversation that somebody else has locked delays its own runs, and no others."""

import time

import pytest
from django.db import connection

from conversations.models import Agent, Run
from conversations.runs import claims
from tests.events.test_writer_locks import QUICK, held, locking
from tests.runs.test_runs import say
from tests.support.claiming import served_agents

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite locks its file, not rows"),
]
DIALOGUE = served_agents("town", "Dialogue")


@pytest.fixture(autouse=True)
def town():
    Agent.objects.create(team="town", name="Dialogue", is_entry=True)


def claimed(*, at_most: int) -> list[str]:
    """Claim runs; return their conversations. It may not wait for a lock as long as the server lets it."""
    began = time.monotonic()
    taken = claims.claim("host:1", DIALOGUE, at_most=at_most)
    assert time.monotonic() - began < QUICK
    return sorted(claim.conversation for claim in taken)


@pytest.mark.parametrize("at_most", [1, 2, 50])
def test_the_runs_of_a_locked_conversation_hold_up_no_others(at_most):
    for key in ("locked", "locked", "locked", "next", "last"):
        say(key=key)

    with held(locking("locked")):
        assert claimed(at_most=at_most) == ["last", "next"][-at_most:]
        assert claimed(at_most=50) == ["last", "next"][:-at_most]
        assert claimed(at_most=50) == []

    assert claimed(at_most=50) == ["locked"]
    assert Run.objects.get(status="running", conversation__key="locked").input_seq == 1


def test_a_run_whose_conversation_is_free_in_a_moment_is_claimed_at_once(monkeypatch):
    monkeypatch.setattr(claims.lock_waits, "BRIEFLY", claims.lock_waits.LockWait(skips=False, ms=5000))
    say(key="busy")

    with held(locking("busy")) as is_over:
        monkeypatch.setattr(claims.random, "choice", lambda runs: is_over.set() or runs[0])

        assert claimed(at_most=50) == ["busy"]
