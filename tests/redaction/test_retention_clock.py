"""A clock that is far ahead redacts nothing: retention waits until it is corrected, or an admin confirms it."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from conversations.core.errors import Conflict, NotAllowed
from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry, Conversation
from conversations.realtime.readiness import not_ready
from conversations.redaction import retention_clock, retention_job, retention_rules
from conversations.redaction.retention_rules import DAY_US
from tests.redaction.test_redact import spoken
from tests.redaction.test_retention import erased
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rule():
    spoken("clock", *"abc")
    return retention_rules.set_rule(SYSTEM, days=365, reason="a year")


@pytest.fixture
def ahead(monkeypatch, rule):
    """Set this machine's clock years ahead, after retention has noted the time."""
    retention_clock.follow()
    set_ahead(monkeypatch, 1_500)


def set_ahead(monkeypatch, days):
    true = retention_clock.machine_time()
    monkeypatch.setattr(retention_clock, "machine_time", lambda: true + days * DAY_US)


def test_the_job_waits_and_says_so_until_the_clock_is_right_again(ahead, monkeypatch):
    job = retention_job.RetentionJob()
    job.start()
    job.wake()
    until(lambda: "1,500 days after the newest time in the database" in job.state, what="the pause")
    assert "confirm it on the page Holds and retention" in job.state
    assert not_ready({"retention": job.state}) == []

    monkeypatch.undo()
    job.wake()
    until(lambda: job.state == "ok", what="retention to go on")
    job.close()

    assert retention_job.last_run()
    assert erased("clock") == []


def test_events_recorded_by_the_clock_that_is_ahead_do_not_make_it_right(ahead, rule):
    Conversation.objects.update(last_at=retention_clock.machine_time())

    with pytest.raises(Conflict, match="nothing was redacted: This machine"):
        retention_job.run_rule(rule)

    assert erased("clock") == []


def test_before_a_time_is_noted_the_newest_event_counts(rule, monkeypatch):
    set_ahead(monkeypatch, 1_500)

    with pytest.raises(Conflict, match="1,500 days after"):
        retention_job.run_rule(rule)


def test_a_week_without_a_server_is_no_jump(rule, monkeypatch):
    retention_clock.follow()
    set_ahead(monkeypatch, 6)

    assert retention_job.run_rule(rule) == (0, 0)
    assert retention_clock.jump() == ""


def test_a_clock_that_was_behind_is_no_jump(rule, monkeypatch):
    retention_clock.follow()
    with monkeypatch.context() as behind:
        set_ahead(behind, -20_000)
        retention_clock.follow()

    assert retention_clock.jump() == ""


def test_an_admin_alone_confirms_it_and_retention_goes_on(ahead, team, client, rule):
    with pytest.raises(NotAllowed):
        retention_clock.confirm(team["auditor"])
    client.force_login(team["admin"])
    page = client.get(reverse("retention")).content.decode()
    assert "Retention is paused. This machine&#39;s clock says" in page

    answer = client.post(reverse("retention-clock"), follow=True).content.decode()

    assert "Retention is paused" not in answer
    assert "Clock confirmed" in answer
    assert retention_job.run_rule(rule) == (3, 0)
    assert erased("clock") == [1, 2, 3]
    assert AuditEntry.objects.filter(verb="confirm_clock", outcome="done").count() == 1


@pytest.mark.parametrize("options", [{}, {"days": 365, "reason": "a year"}], ids=["rules", "days"])
def test_the_command_asks_for_a_confirmation(ahead, options):
    with pytest.raises(CommandError, match="If the clock is right, add --confirm-clock"):
        call_command("expire", **options, stdout=StringIO())
    assert erased("clock") == []

    call_command("expire", **options, confirm_clock=True, stdout=StringIO(), stderr=StringIO())

    assert erased("clock") == [1, 2, 3]
