"""Filters of lists by a conversation whose id is erased: in saved views, and in audit entries of exports."""

import json

import pytest

from conversations.access.audit.listing.export import EXPORT
from conversations.access.audit.listing.filters import AuditFilters
from conversations.access.list_export import begin_export
from conversations.models import AuditEntry, SavedView
from conversations.redaction.erase_id import erase_id
from conversations.tool_calls.listing.filters import CallFilters
from conversations.tool_calls.saved_views import save_view
from tests.redaction.test_erase_id import ida, say

KEY = "Zoë Müller, 7+1"
__all__ = ["ida"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", ["alice@example.com", KEY, "a&conversation=b", "100%"])
def test_a_view_shows_the_same_conversation_under_its_new_id(ida, key):
    say(key, "quokka")
    say("another", "wombat")
    save_view(ida, "Hers", CallFilters(conversation=key, q="a b").query)
    save_view(ida, "Theirs", other := CallFilters(conversation="another", q=key[:1]).query)

    (erased,) = erase_id(ida, key, "asked for")

    assert SavedView.objects.get(name="Hers").query == CallFilters(conversation=erased.conversation, q="a b").query
    assert SavedView.objects.get(name="Theirs").query == other


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("filters", [{"conversation": KEY}, {"target": f"conversation:{KEY}"}], ids=["its", "about it"])
def test_an_audit_entry_of_a_lists_export_names_the_new_id(ida, filters):
    say(KEY, "quokka")
    begin_export(ida, EXPORT, AuditFilters(**filters), "csv")

    (erased,) = erase_id(ida, KEY, "asked for")

    ((name, value),) = filters.items()
    query = json.loads(AuditEntry.objects.get(verb="export_audit", outcome="done").correlation)["query"]
    assert query == AuditFilters(**{name: value.replace(KEY, erased.conversation)}).query
