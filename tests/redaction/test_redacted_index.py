"""Redacted words leave the search index also where it was filled by an older declaration of what is searched."""

import json
from dataclasses import replace

import pytest

from conversations.events import log, payload
from conversations.events.event_type import TYPES, Search
from conversations.redaction.redact import redact
from tests.redaction.test_redact import index
from tests.search.test_search_index import known
from tests.support.searching import ROBOT, search_all

pytestmark = pytest.mark.django_db(transaction=True)
KIND = "fleet.report"


def report(key, **fields):
    body = json.dumps({"event": KIND, "conversation_id": key, **fields})
    log.append([log.from_bus(f"stream:{key}", None, body, payload.parse(body.encode()), ROBOT)])


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
