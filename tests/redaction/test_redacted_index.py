"""Redacted words leave the search index also where it was filled by an older declaration of what is searched."""

from dataclasses import replace

import pytest

from conversations.events import log
from conversations.events.event_type import TYPES, Search
from conversations.redaction.redact import redact
from tests.redaction.test_redact import index
from tests.search.test_search_index import known
from tests.support.searching import ROBOT, search_all
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)
KIND = "fleet.report"


def report(key, **fields):
    log.append([unchecked(key, {"event": KIND, **fields}, ROBOT)])


@pytest.mark.parametrize("declared", [Search(is_indexed=False), Search(fields=("text",))])
def test_words_of_a_type_that_was_declared_since_leave_the_index(team, monkeypatch, declared):
    report("desk", text="numbat", place="quokka")
    report("desk", text="wombat", place="here")
    index()
    assert known("quokka")

    monkeypatch.setitem(TYPES, KIND, replace(TYPES["log"], name=KIND, search=declared))
    redact(team["admin"], "desk", [1], "asked for")
    index()

    assert [word for word in ("quokka", "numbat") if known(word)] == []
    assert search_all("quokka") == []
    assert len(search_all("wombat")) == bool(declared.fields)
