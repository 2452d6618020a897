"""Reads that pass over tokens use the partial index without them: SQLite takes it only where a query says `NOT
kind='token'`, in the index's own words."""

import re
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.events import log
from conversations.events.log import interaction_counts, outline_reads, reads, timeline_reads
from conversations.models import Conversation
from tests.support import large_talks

OTHER_WORDING = re.compile(r"kind\s*(?:<>|!=)\s*'token'")


@pytest.mark.django_db
@pytest.mark.sqlite("its query plans")
def test_pages_outline_timeline_and_graph_step_over_no_token():
    large_talks.write("busy", events=600)
    row = Conversation.objects.get(key="busy")
    place = row.pk, row.key, row.head_seq

    with CaptureQueriesContext(connection) as queries:
        log.read_told("busy", 10)
        reads.newest_page("busy")
        reads.page_before("busy", 300)
        reads.page_after("busy", 300)
        outline_reads.around(*place, 300)
        timeline_reads.read(*place)
        interaction_counts.interactions(*place)

    plans = [(query["sql"], _plan(query["sql"])) for query in queries if "kind='token'" in query["sql"]]
    passing = [(sql, plan) for sql, plan in plans if "NOT kind='token'" in sql]
    assert len(passing) >= 7
    assert [sql for sql, plan in passing if "event_drawn" not in plan] == []


def _plan(sql):
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN QUERY PLAN " + sql.replace("%", "%%"))
        return "\n".join(str(row[3]) for row in cursor.fetchall() if "conversations_event" in str(row[3]))


def test_no_query_says_it_in_other_words():
    root = Path(reads.__file__).parents[3]
    files = [
        path for package in ("agents_app", "conversations", "dashboard") for path in (root / package).rglob("*.py")
    ]

    assert [str(path) for path in files if OTHER_WORDING.search(path.read_text())] == []
