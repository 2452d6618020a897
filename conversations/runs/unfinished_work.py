"""Determine whether workers have anything to look after. Queried by each of them every few seconds."""

from typing import NamedTuple

from django.db import connection

_EXISTS = """SELECT EXISTS(SELECT 1 FROM conversations_run WHERE status='running'),
EXISTS(SELECT 1 FROM conversations_run WHERE status='queued'),
EXISTS(SELECT 1 FROM conversations_approval WHERE status='pending')"""


class UnfinishedWork(NamedTuple):
    """Whether there are any active runs, runs that wait for a worker, or approval requests."""

    running: bool
    queued: bool
    open_requests: bool


def unfinished_work() -> UnfinishedWork:
    """Return what there is, with three queries on small indexes; building them with the ORM would take longer than
    running them."""
    with connection.cursor() as cursor:
        cursor.execute(_EXISTS)
        return UnfinishedWork(*map(bool, cursor.fetchone()))
