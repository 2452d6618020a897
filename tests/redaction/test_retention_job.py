"""What the retention job tells of itself."""

import threading

import pytest
from django.db import OperationalError

from conversations.redaction.retention_job import RetentionJob
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_database_that_is_back_is_noticed_without_a_wait_for_the_next_look(monkeypatch):
    job, is_told, looks = RetentionJob(), threading.Event(), []

    def work():
        looks.append(job.state)
        if len(looks) == 1:
            raise OperationalError("couldn't get a connection")
        is_told.wait(30)
        return ""

    monkeypatch.setattr(job, "_work", work)
    job.start()
    job.wake()
    until(lambda: "couldn't get a connection" in job.state, what="the trouble to be told")
    is_told.set()

    until(lambda: job.state == "ok", within=30, what="retention to go on")
    job.close()
