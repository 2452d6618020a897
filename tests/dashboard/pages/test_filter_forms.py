"""The filter form beside a list: sent again, it says every filter in force, so that changing one drops no other."""

from urllib.parse import urlencode

import pytest

from conversations.access.audit.listing.filters import AuditFilters
from conversations.core.write_transaction import write_transaction
from conversations.events import log
from conversations.models import ToolCall
from conversations.tool_calls.listing.filters import CallFilters
from tests.support import listed, toolcalls
from tests.support.cast import client_of
from tests.support.posted_form import sent_pairs

pytestmark = pytest.mark.django_db


def assert_says_every_filter(browser, path, kind, query):
    """Check that what the form of a page sends are the filters of its address, in any order."""
    names = {*kind.many, *kind.single}
    page = browser.get(f"{path}?{query}").content.decode()
    pairs = [(name, value) for name, value in sent_pairs(page) if name in names and value]
    sent, filters = (listed.read_filters(kind, text) for text in (urlencode(pairs), query))

    assert sorted(sent.pairs) == sorted(filters.pairs) != []


@pytest.mark.parametrize(
    "query",
    [
        "agent=Desk&status=failed",  # the other filter leaves calls, none of them failed
        "agent=Desk&tool=gone&by=maria",
        "agent=nobody&status=done&status=failed",
        "server=gone",  # a filter of which no call has a value any more
        "qualified=billing.refund&qualified=look_up",
        "q=Ada&where=around&last=15m&replayed=no&min_ms=1&max_bytes=7.5",
        "conversation=desk&run=r1&call_id=c1&from=2026-11-22T08:30Z&to=2026-11-23T08:30Z",
    ],
)
def test_the_form_of_the_calls_says_every_filter(team, query):
    for number in range(5):
        log.append(toolcalls.call("desk", number))

    assert_says_every_filter(client_of(team["viewer"]), "/calls/", CallFilters, query)


def test_a_chosen_value_keeps_its_box_however_many_others_there_are(team):
    with write_transaction():
        for number in range(30):
            log.append(toolcalls.call("desk", number, agent=f"Desk {number}", name=f"tool_{number}"))
    ToolCall.objects.filter(name="tool_3").delete()
    query = "tool=tool_3&agent=Desk+7"

    assert_says_every_filter(client_of(team["viewer"]), "/calls/", CallFilters, query)


@pytest.mark.parametrize(
    "query",
    [
        "who=gone&who=system&acting_as=agent%3A*&verb=nothing",
        "outcome=refused&target=approval:*&conversation=th-*&q=why&last=7d",
        "from=2026-11-22T08:30Z&to=2026-11-23T08:30Z",
    ],
)
def test_the_form_of_the_audit_log_says_every_filter(team, query):
    assert_says_every_filter(client_of(team["auditor"]), "/audit/", AuditFilters, query)
