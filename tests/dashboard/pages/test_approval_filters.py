"""The approvals page by agent, tool and risk: what is listed and counted, its addresses, its limits."""

import re

import pytest

from conversations.runs.approvals import inbox, inbox_filters
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule
from tests.support import teamwork
from tests.support.cast import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("town")]

ASKED = [("a", "Desk", "refund", "unsafe"), ("b", "Desk", "read_file", "read"), ("c", "Permits", "refund", "unsafe"),
         ("d", "Permits", "drop_table", "destructive")]  # fmt: skip


@pytest.fixture
def requests(people):
    """Four requests that wait."""
    return {
        key: teamwork.ask(people["operator"], key=key, agent=agent, name=name, qualified_name=name, effect=effect)
        for key, agent, name, effect in ASKED
    }


@pytest.fixture
def page(people, requests):
    """What somebody sees at an address."""
    person = client_of(people["approver"])

    def get(address):
        answer = person.get(address)
        assert answer.status_code == 200, answer.content
        return answer.content.decode()

    return get


def listed(html):
    return re.findall(r'<div class="ask"[^>]*data-key="([^"]*)"', html)


def values(html, name):
    menu = re.search(rf'id="filter-{name}".*?</nav>', html, re.S)
    return re.findall(r'dir="auto">([^<]*)</span><span class="push faint">(\d+)', menu[0]) if menu else []


@pytest.mark.parametrize(
    ("query", "keys"),
    [("", "abcd"), ("agent=Desk", "ab"), ("tool=refund", "ac"), ("risk=destructive", "d"),
     ("agent=Permits&tool=refund", "c"), ("agent=Nobody", "")],
)  # fmt: skip
def test_a_filter_lists_what_passes(page, requests, query, keys):
    assert set(listed(page(f"/approvals/?{query}"))) == {requests[key].id for key in keys}


def test_values_are_counted_under_the_other_filters(page):
    html = page("/approvals/?agent=Permits")

    assert values(html, "tool") == [("drop_table", "1"), ("refund", "1")]
    assert values(html, "risk") == [("destructive", "1"), ("unsafe", "1")]
    assert values(html, "agent") == []
    assert values(page("/approvals/"), "agent") == [("Desk", "2"), ("Permits", "2")]
    assert 'href="/approvals/?tool=refund&amp;risk=unsafe"' in page("/approvals/?tool=refund")


def test_the_risk_is_that_of_the_policy_of_now(people, page, requests):
    edit_policy.set_policy(people["admin"], PolicyRule("", "refund", "ask", "destructive"))

    assert set(listed(page("/approvals/?risk=destructive"))) == {requests[key].id for key in "acd"}


def test_nothing_that_passes_is_said_with_a_way_back(page):
    html = page("/approvals/?view=decided&agent=Desk")

    assert "No request matches" in html
    assert '<a class="button" href="/approvals/?view=decided">Clear filters</a>' in html
    assert 'data-only-agent="Desk"' in html


def test_addresses_keep_the_filters(page, requests):
    html = page(f"/approvals/{requests['a'].id}/?agent=Desk")

    assert set(listed(html)) == {requests[key].id for key in "ab"}
    assert 'href="/approvals/?view=decided&amp;agent=Desk"' in html
    assert 'data-query="agent=Desk"' in html


def test_a_page_looks_at_so_many_and_the_next_goes_on(requests, monkeypatch):
    monkeypatch.setattr(inbox_filters, "MAX_LOOKED", 3)
    filters = inbox_filters.Filters(agent="Permits")

    first, cursor = inbox.page(status="pending", is_oldest_first=True, filters=filters)
    rest, end = inbox.page(status="pending", is_oldest_first=True, filters=filters, before=cursor)

    assert [card.key for card in [*first, *rest]] == ["c", "d"]
    assert (cursor, end) == (requests["c"].id, None)


def test_a_page_of_filtered_requests_is_left_off_at_its_limit(requests):
    filters = inbox_filters.Filters(tool="refund")

    first, cursor = inbox.page(status="pending", is_oldest_first=True, filters=filters, limit=1)
    rest, end = inbox.page(status="pending", is_oldest_first=True, filters=filters, limit=1, before=cursor)

    assert [card.key for card in [*first, *rest]] == ["a", "c"]
    assert end is None
