"""Lists of "the last 15 minutes": pages and files that are read while the clock goes on have the rows of the first."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

import pytest

from conversations.access.audit import chain
from conversations.access.audit.listing import sql_filters as audit_filters
from conversations.core import principals
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.listing import url_filters
from conversations.models import AuditEntry
from conversations.tool_calls.listing import sql_filters as call_filters
from tests.support import toolcalls
from tests.support.cast import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("rows")]
ROWS = 130  # of each list
QUERIES = {"calls": "last=15m", "audit": "last=15m&verb=look"}
ADDRESSES = [f"/api/v1/tool-calls?{QUERIES['calls']}", f"/api/v1/audit?{QUERIES['audit']}"]


class Clock(datetime):
    """The clock of the filters; a test may set it forward."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz=None):
        """Return the moment, that far ahead."""
        return datetime.now(tz or UTC) + cls.ahead


@pytest.fixture
def rows(monkeypatch, team):
    """As many calls and audit entries, just now."""
    monkeypatch.setattr(Clock, "ahead", timedelta())
    for module in (url_filters, audit_filters, call_filters):
        monkeypatch.setattr(module, "datetime", Clock)
    for number in range(ROWS):
        log.append(toolcalls.call("desk", number))
    with write_transaction():
        for number in range(ROWS):
            chain.add_entry(principals.user_principal("maria"), "look", f"thing:{number}")


@pytest.fixture
def browser(team):
    """The browser of somebody who may see and export both lists."""
    return client_of(team["auditor"])


def later():
    """Let so much time go by that none of the rows is of the last 15 minutes."""
    Clock.ahead += timedelta(minutes=16)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_the_pages_after_the_first_have_the_rows_that_it_left(browser, name):
    query = QUERIES[name]
    address, keys = f"/{name}/?{query}", []
    while address:
        page = browser.get(address).content.decode()
        assert "15 minutes" in page
        keys += re.findall(r'data-key="([^"]*)"', page)
        address = next(iter(re.findall(r'href="([^"]*)" rel="next"', page)), "").replace("&amp;", "&")
        later()

    assert len(keys) == len(set(keys)) == ROWS
    assert 'data-key="' not in browser.get(f"/{name}/?{query}").content.decode()


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_cursor_of_the_api_goes_on_in_the_same_time(browser, address):
    listed, cursor = [], ""
    while cursor is not None:
        answer = browser.get(f"{address}&limit=50&before={cursor}").json()
        listed += answer["items"]
        cursor = answer["cursor"]
        later()

    assert len(listed) == ROWS
    assert browser.get(address).json()["items"] == []


@pytest.mark.parametrize("before", ["1~", "~1", "~", "1~x", "1~1~1"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_cursor_without_a_moment_is_refused(browser, address, before):
    answer = browser.get(f"{address}&before={before}")

    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "before"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", QUERIES)
def test_a_file_has_what_matched_when_it_was_begun_and_its_entry_says_since_when(browser, name, monkeypatch):
    monkeypatch.setattr("conversations.access.audit.listing.export.BATCH", 20)
    answer = browser.get(f"/{name}/export/jsonl?{QUERIES[name]}")

    async def read():
        pieces = []
        async for piece in answer.streaming_content:
            pieces.append(piece)
            later()
        return b"".join(pieces)

    assert len(asyncio.run(read()).splitlines()) == ROWS
    entry = AuditEntry.objects.filter(verb__startswith="export_", outcome="done").get()
    query = parse_qs(json.loads(entry.correlation)["query"])
    begins = datetime.now(UTC) - datetime.fromisoformat(query["from"][0])
    assert "last" not in query
    assert timedelta(minutes=15) <= begins < timedelta(minutes=25)
