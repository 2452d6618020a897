"""Rows are made anew after an expiry, of however many conversations, and though one of them fails."""

import sqlite3

import pytest
from django.db import connection

from conversations.models import Conversation, Redaction
from conversations.redaction import redact
from tests.redaction.test_redact import aged, everywhere, index, spoken
from tests.redaction.test_unusual_bodies import expire

pytestmark = pytest.mark.django_db(transaction=True)
FEW = 30  # parameters that a statement may have here; SQLite allows 250,000, or 32,766


@pytest.fixture
def few_parameters():
    """Have SQLite allow no more."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    most = connection.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, FEW)
    yield
    connection.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, most)


def expired(monkeypatch, count):
    """Expire an event of so many conversations and leave their rows as a process does that is killed before its end."""
    for n in range(count):
        spoken(f"fold-{n}", f"Hedgehog {n}")
        aged(f"fold-{n}", 1)
    index()
    with monkeypatch.context() as killed:
        killed.setattr(redact, "fold_rest", lambda: None)
        expire()
    assert Redaction.objects.filter(is_folded=False).count() == count


@pytest.mark.slow
def test_any_number_of_conversations_is_folded(monkeypatch, request):
    expired(monkeypatch, FEW + 10)
    request.getfixturevalue("few_parameters")

    redact.fold_rest()

    assert not Redaction.objects.filter(is_folded=False).exists()
    assert not Conversation.objects.filter(last_line__contains="Hedgehog").exists()


def test_one_that_cannot_be_folded_holds_up_no_other(monkeypatch, caplog):
    expired(monkeypatch, 3)
    run = redact.Refold.run

    def failing(self):
        if self.head.key == "fold-1":
            raise ValueError("no rows")
        run(self)

    monkeypatch.setattr(redact.Refold, "run", failing)

    redact.fold_rest()

    assert list(Redaction.objects.filter(is_folded=False).values_list("conversation__key", flat=True)) == ["fold-1"]
    assert "fold-1" in caplog.text
    monkeypatch.undo()
    redact.fold_rest()
    assert everywhere("Hedgehog") == []
