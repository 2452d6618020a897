"""A redaction of more events than its audit entry can list: the entry is erased and proved like any other."""

import json

import pytest

from conversations.access.audit import chain, entry_facts
from conversations.conversation.fork import fork
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.evidence import bundle, checkpoints
from conversations.evidence.checkpoints import Signer
from conversations.models import AuditEntry
from conversations.redaction import audit_entries, scope
from conversations.redaction.redact import redact
from conversations.redaction.scope import RedactionScope
from tests.events.test_log import message_event
from tests.redaction.test_redact import everywhere
from tests.support.cast import client_of

pytestmark = pytest.mark.django_db(transaction=True)
ID = "anna@example.com"


def cut(facts):
    """Write the facts as releases before this one did."""
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text if len(text) <= 4000 else text[:3999] + "…"


@pytest.fixture(params=["now", "cut"])
def entry(request, team, monkeypatch):
    """The entry of a redaction of 500 events and their copies in a fork, as it is written, or was."""
    if request.param == "cut":
        monkeypatch.setattr(entry_facts, "as_text", cut)
    log.append([message_event(ID, f"word {n}") for n in range(620)])
    fork(team["admin"], ID, 620)
    redact(team["admin"], ID, range(105, 605), "asked for")
    monkeypatch.undo()
    return AuditEntry.objects.get(verb="redact")


@pytest.mark.slow
def test_its_conversation_is_proved(entry, tmp_path):
    signer = Signer(tmp_path / "k.json", "example.com/large")
    checkpoints.make(signer)

    with bundle.write(signer, [ID]) as made:
        assert made.read()


@pytest.mark.slow
def test_its_entry_is_erased(entry, team):
    assert audit_entries.erase(team["admin"], [entry.seq], "Article 17") == 1

    assert AuditEntry.objects.get(seq=entry.seq).reason == chain.ERASED
    assert chain.verify().ok


@pytest.mark.slow
def test_its_entry_loses_the_id_of_the_conversation(entry, team):
    assert ID in entry.correlation

    scope.carry_out(SYSTEM, RedactionScope(ID, is_id=True), "asked for")

    assert everywhere(ID) == []
    assert chain.verify().ok


@pytest.mark.slow
def test_its_entry_is_shown(entry, team):
    page = client_of(team["auditor"]).get(f"/audit/?entry={entry.seq}")

    assert (page.status_code, "105,106,107" in page.content.decode().replace(" ", "")) == (200, True)
