"""Whether there is anything for workers to look after. Asked every few seconds by each of them."""

from typing import NamedTuple

from django.db import connection

_EXISTS = """SELECT EXISTS(SELECT 1 FROM conversations_run WHERE status='running'),
EXISTS(SELECT 1 FROM conversations_run WHERE status='queued'),
EXISTS(SELECT 1 FROM conversations_approval WHERE status='pending')"""


class UnfinishedWork(NamedTuple):
    """Of what there is any: runs at work, runs that wait for a worker, questions."""

    running: bool
    queued: bool
    questions: bool


def unfinished_work() -> UnfinishedWork:
    """Return what there is, by three small indexes: building the queries takes longer than answering this."""
    with connection.cursor() as cursor:
        cursor.execute(_EXISTS)
        return UnfinishedWork(*map(bool, cursor.fetchone()))
