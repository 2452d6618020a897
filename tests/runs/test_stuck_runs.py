"""Runs that a dead worker left behind a lease that cannot be: the clock was ahead when it was taken."""

import json

import pytest

from conversations.core import node_heartbeat
from conversations.core.database_clock import database_now
from conversations.events.log.rebuild import rebuild
from conversations.models import Agent, AuditEntry, Event, Node, Run
from conversations.runs import claims, leases, stop_and_rerun
from tests.runs.test_runs import claimed

pytestmark = pytest.mark.django_db

YEAR = 366 * 24 * 3600 * 1_000_000  # µs


class Clock:
    """A process's own clock, turned by hand."""

    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture(autouse=True)
def town():
    Agent.objects.create(team="town", name="Dialogue", is_entry=True)


@pytest.fixture
def stuck():
    """A run that was claimed while the clock was a year ahead."""
    claim = claimed()
    Run.objects.update(lease_until=database_now() + YEAR)
    return claim.run


def ended():
    return Run.objects.get().status, Event.objects.order_by("-seq").values_list("kind", flat=True).first()


def test_a_person_frees_a_run_whose_worker_is_gone(stuck, people):
    stop_and_rerun.cancel_run(people["operator"], stuck)

    assert ended() == ("interrupted", "run.interrupted")
    assert Event.objects.latest("seq").principal == "user:otto"
    assert AuditEntry.objects.get().verb == "cancel_run"


def test_a_run_whose_worker_is_there_is_only_asked_to_stop(stuck, people):
    """The clock went back while it runs: its worker renews the lease in a moment."""
    beat("host:1", database_now())

    stop_and_rerun.cancel_run(people["operator"], stuck)

    assert Run.objects.values_list("status", "stop").get() == ("running", "cancel")


def test_a_beat_of_the_future_is_no_sign_of_life(stuck, people):
    beat("host:1", database_now() + YEAR)

    stop_and_rerun.cancel_run(people["operator"], stuck)

    assert Run.objects.get().status == "interrupted"
    assert [is_there for _, is_there in node_heartbeat.known_nodes()] == [False]


@pytest.mark.parametrize(
    ("seen_after_s", "reason"),
    [(4, "the worker host:1 did not renew its lease in time"), (-4, "the worker host:1 is gone")],
)
def test_a_worker_that_outlived_its_lease_is_not_called_gone(seen_after_s, reason):
    claimed()
    ended_at = database_now() - 5_000_000
    Run.objects.update(lease_until=ended_at)
    beat("host:1", ended_at + seen_after_s * 1_000_000)

    leases.interrupt_expired()

    assert json.loads(Event.objects.latest("seq").body)["reason"].startswith(reason)


def test_a_run_with_an_ended_lease_is_freed_without_any_worker(people):
    claim = claimed()
    Run.objects.update(lease_until=1)

    stop_and_rerun.cancel_run(people["operator"], claim.run)

    assert Run.objects.get().status == "interrupted"


def test_a_run_that_its_worker_renews_at_the_last_moment_is_asked_to_stop(people, monkeypatch):
    claim = claimed()
    Run.objects.update(lease_until=1)
    is_abandoned = leases.is_abandoned

    def renewed_meanwhile(run):
        answer = is_abandoned(run)
        claims.renew([claim])
        return answer

    monkeypatch.setattr(leases, "is_abandoned", renewed_meanwhile)
    stop_and_rerun.cancel_run(people["operator"], claim.run)

    assert Run.objects.values_list("status", "stop").get() == ("running", "cancel")


def test_a_lease_that_cannot_be_ends_unless_it_is_renewed(stuck, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(leases, "time", clock)
    assert leases.interrupt_expired() == []

    clock.now += leases.RUN_LEASE_S - 1
    assert leases.interrupt_expired() == []
    Run.objects.update(lease_until=database_now() + 2 * YEAR)  # renewed, the clock still ahead
    clock.now += 2
    assert leases.interrupt_expired() == []

    clock.now += leases.RUN_LEASE_S
    assert leases.interrupt_expired() == [stuck]
    assert Run.objects.get().status == "interrupted"


@pytest.mark.parametrize("is_held", [False, True], ids=["left", "held"])
def test_a_run_whose_row_was_made_again_ends_unless_its_worker_renews_it(monkeypatch, is_held):
    clock, claim = Clock(), claimed()
    monkeypatch.setattr(leases, "time", clock)
    Run.objects.all().delete()
    list(rebuild())
    assert Run.objects.values_list("status", "lease_until").get() == ("running", None)
    assert leases.interrupt_expired() == []

    assert claims.renew([claim] if is_held else []) == ({claim.run: ""} if is_held else {})
    clock.now += leases.RUN_LEASE_S

    assert leases.interrupt_expired() == ([] if is_held else [claim.run])
    assert Run.objects.get().status == ("running" if is_held else "interrupted")


def test_who_alone_runs_agents_ends_what_others_left(stuck):
    assert leases.interrupt_all() == [stuck]
    assert ended() == ("interrupted", "run.interrupted")


def beat(worker, seen_at):
    name = node_heartbeat.worker_node(worker)
    Node.objects.create(name=name, kind="worker", version="1", started_at=seen_at, seen_at=seen_at)
