"""A conversation that somebody else has locked delays its own runs, and no others."""

import time

import pytest
from django.db import connection

from agents_app.worker import blocked_runs
from conversations.models import Agent, Approval, Run
from conversations.runs import claims, leases
from conversations.runs.approvals import auto_approval, external_approvals, overdue_requests
from tests.events.test_writer_locks import QUICK, held, locking
from tests.runs.approvals import test_auto_approval, test_external_approvals
from tests.runs.test_runs import say
from tests.support import teamwork
from tests.support.cast import cast
from tests.support.claiming import served_agents

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite locks its file, not rows"),
]
DIALOGUE = served_agents("town", "Dialogue")


@pytest.fixture(autouse=True)
def town():
    Agent.objects.create(team="town", name="Dialogue", is_entry=True)


def quickly(work):
    """Return what `work` returns; it may not wait for a lock as long as the server lets it."""
    began = time.monotonic()
    done = work()
    assert time.monotonic() - began < QUICK
    return done


def claimed(*, at_most: int) -> list[str]:
    """Claim runs; return their conversations."""
    taken = quickly(lambda: claims.claim("host:1", DIALOGUE, at_most=at_most))
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


def running(key: str) -> str:
    say(key=key)
    (claim,) = claims.claim("host:1", DIALOGUE, at_most=1)
    return claim.run


def left_by_a_dead_worker() -> list[str]:
    runs = [running(key) for key in ("locked", "free")]
    Run.objects.update(lease_until=1)
    return runs


def overdue() -> list[str]:
    operator = cast()["operator"]
    requests = [teamwork.ask(operator, key=key).id for key in ("locked", "free")]
    Approval.objects.update(deadline=1)
    return requests


def auto_approved() -> list[str]:
    operator = cast()["operator"]
    requests = [teamwork.ask(operator, key=key).id for key in ("locked", "free")]
    test_auto_approval.rule()
    return requests


def abandoned() -> list[str]:
    requests = [test_external_approvals.ask(key=key).id for key in ("locked", "free")]
    Run.objects.update(lease_until=1)
    return requests


def orphaned() -> list[str]:
    for key in ("locked", "free"):
        say(key=key)
    Run.objects.update(agent="Removed", team="town")
    return list(Run.objects.order_by("id").values_list("id", flat=True))


def waiting_for_a_server() -> list[str]:
    for key in ("locked", "free"):
        say(key=key)
        (claim,) = claims.claim("host:1", DIALOGUE, at_most=1)
        claims.suspend(claim, "server", about={"server": "tools", "detail": "away"}, **teamwork.SEALED)
    return list(Run.objects.order_by("id").values_list("id", flat=True))


@pytest.mark.each_form
@pytest.mark.parametrize(
    ("waiting", "work"),
    [
        (left_by_a_dead_worker, leases.interrupt_expired),
        (overdue, overdue_requests.handle_due),
        (auto_approved, auto_approval.approve_waiting),
        (abandoned, external_approvals.withdraw_abandoned),
        (orphaned, lambda: blocked_runs.end_orphaned_runs({"town": ["Dialogue"]})),
        (waiting_for_a_server, lambda: blocked_runs.requeue_runs_with_server({"town": ["tools"]})),
    ],
)
def test_what_is_done_periodically_leaves_a_locked_conversation_for_later(monkeypatch, waiting, work):
    monkeypatch.setattr(blocked_runs, "_looked_upto", {})
    locked, free = waiting()

    with held(locking("locked")):
        assert quickly(work) == [free]

    assert work() == [locked]
