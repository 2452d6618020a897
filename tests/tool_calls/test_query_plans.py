"""What SQLite does to answer a page: no event and no tool call is looked for by reading all of them."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.events import log
from conversations.models import ToolCall
from conversations.tool_calls.listing.export import EXPORT
from conversations.tool_calls.listing.filters import CallFilters
from tests.support import toolcalls
from tests.support.cast import client_of
from tests.support.searching import catch_up

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite("its query plans")]
LARGE = ("conversations_event", "conversations_toolcall")  # tables that are never read from end to end
PAGES = (
    "/",
    "/calls/",
    "/calls/?q=paid&where=around",
    "/calls/?status=done&agent=Desk",
    "/search/?q=paid",
    "/search/?kind=tool_step&since=2020-01-01&until=2090-01-01",
    "/conversations/desk/",
    "/conversations/desk/?view=lanes",
    "/conversations/desk/?view=timeline",
    "/conversations/desk/?view=graph",
    "/numbers/",
    "/audit/",
    "/agents/",
    "/approvals/",
    "/api/v1/conversations",
    "/api/v1/conversations/desk/events",
    "/api/v1/tool-calls",
    "/api/v1/search?q=paid",
)


def scans(queries: CaptureQueriesContext) -> list[str]:
    """Return each statement that reads all of a large table, after what the database says that it does."""
    plans = []
    for sql in [
        captured_query["sql"]
        for captured_query in queries.captured_queries
        if captured_query["sql"].lstrip("( ").startswith(("SELECT", "WITH"))
    ]:
        names = {name for table in LARGE for name in _names(sql, table)}
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + sql.replace("%", "%%"))
            steps = [str(row[3]) for row in cursor.fetchall()]
        inner = [step.split()[1] for step in steps if step.startswith(("CO-ROUTINE ", "MATERIALIZE "))]
        for step in steps:
            if _is_scan(step, names) and not _ends(step, sql):
                if step.split()[1] in inner:
                    inner.remove(step.split()[1])  # the rows of a query inside this one, which is called the same
                else:
                    plans.append(f"{step}: {sql}")
    return plans


def _is_scan(step: str, names: set[str]) -> bool:
    return step.startswith("SCAN ") and step.split()[1] in names


def _ends(step: str, sql: str) -> bool:
    """Return whether a walk along an index in the order that is asked for ends at a bound."""
    return "USING INDEX call_newest" in step and "LIMIT" in sql


def _names(sql: str, table: str) -> set[str]:
    """Return the names that a statement calls a table by."""
    aliases = re.findall(rf'\b{table}"? (?:AS )?"?(\w+)', sql)
    return {table, *(alias for alias in aliases if alias.islower())}


@pytest.fixture
def recorded() -> None:
    """Calls of two conversations, ours and external agents'."""
    for number in range(4):
        log.append(toolcalls.call("desk" if number % 2 else "other", number, result_summary="paid"))
    log.append(toolcalls.ours("ours", "run-1", 1, decision="approve"))
    catch_up()


@pytest.mark.parametrize("address", PAGES)
def test_a_page_reads_no_large_table_from_end_to_end(recorded: None, team, address: str) -> None:
    browser = client_of(team["admin"])

    with CaptureQueriesContext(connection) as queries:
        answer = browser.get(address)

    assert answer.status_code == 200
    assert scans(queries) == []


def test_the_page_of_a_call_reads_no_large_table_from_end_to_end(recorded: None, team) -> None:
    browser, calls = client_of(team["admin"]), list(ToolCall.objects.values_list("id", flat=True))

    with CaptureQueriesContext(connection) as queries:
        answers = [browser.get(f"/calls/{call}/") for call in calls]

    assert {answer.status_code for answer in answers} == {200}
    assert scans(queries) == []


def test_an_export_of_calls_reads_no_large_table_from_end_to_end(recorded: None) -> None:
    with CaptureQueriesContext(connection) as queries:
        EXPORT.pieces(CallFilters(), "csv")(None)

    assert scans(queries) == []


def test_a_scan_is_recognized(recorded: None) -> None:
    with CaptureQueriesContext(connection) as queries, connection.cursor() as cursor:
        cursor.execute("SELECT e.seq FROM conversations_event e WHERE (e.seq,e.kind) IN (VALUES (1,'a'),(2,'b'))")

    assert len(scans(queries)) == 1
