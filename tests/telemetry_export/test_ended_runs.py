"""Which runs have ended: each once, although a fork has a copy of its end."""

import pytest

from conversations.conversation.fork import fork
from conversations.models import Conversation, Event
from conversations.telemetry_export import ended_runs
from tests.support import teamwork

pytestmark = pytest.mark.django_db


def test_a_forks_copy_of_an_end_is_no_run_that_ended(people):
    teamwork.team()
    run = teamwork.fail(people["operator"])
    fork(people["operator"], "flood", Conversation.objects.get().head_seq)
    assert Event.objects.filter(kind="run.failed", run=run).count() == 2

    assert [end.run for end in ended_runs.between(0, ended_runs.newest_row(), 10)] == [run]
    assert ended_runs.count(0, 10) == 1
