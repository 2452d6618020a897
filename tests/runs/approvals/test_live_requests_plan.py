"""What a database does to find the requests that changed last, once a second: it walks indexes, never all requests or
all conversations."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.models import Approval, Conversation
from conversations.runs.approvals import live_requests

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]
REQUESTS = 2_000


@pytest.fixture
def requests():
    """Many conversations, each with a request that waits; one of all requests is escalated."""
    Conversation.objects.bulk_create(Conversation(key=f"c{n}") for n in range(REQUESTS))
    Approval.objects.bulk_create(
        Approval(id=f"a{n:06}", conversation_id=of, tool_call=f"call-{n}", run=f"run-{n}", asked_seq=1, asked_at=n)
        for n, of in enumerate(Conversation.objects.values_list("id", flat=True))
    )
    Approval.objects.filter(id="a000000").update(escalated_seq=2, escalated_to="admin")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def plan_steps():
    """Look for the changes; return the steps of all its statements, with the rows that PostgreSQL removed."""
    with CaptureQueriesContext(connection) as captured:
        assert len(live_requests.SOURCE.versions(100)) == 101
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN ANALYZE "
    steps = []
    with connection.cursor() as cursor:
        for query in captured.captured_queries:
            cursor.execute(explain + query["sql"].replace("%", "%%"))
            steps += [str(row[-1]) for row in cursor.fetchall()]
    return steps


@pytest.mark.slow
def test_it_reads_neither_all_pending_requests_nor_all_conversations(requests):
    steps = plan_steps()

    assert [step for step in steps if "approval_pending" in step or "BLOOM" in step or "Seq Scan" in step] == []
    assert any("approval_escalated" in step for step in steps)
