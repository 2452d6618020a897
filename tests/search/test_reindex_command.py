"""Long commands show how far they are."""

import pytest
from django.core.management import call_command

from conversations.import_export.progress import ProgressLine
from conversations.search import index_writer
from conversations.search.indexer import Indexer
from tests.support.searching import say


@pytest.mark.django_db(transaction=True)
def test_the_command_shows_its_progress_and_says_once_that_a_server_helps(capsys, monkeypatch):
    say("desk", "refund")
    step, losses, shown = Indexer.step, iter(range(3)), []

    def superseded_at_first(indexer):
        if next(losses, None) is not None:
            raise index_writer.IndexSuperseded
        return step(indexer)

    monkeypatch.setattr(Indexer, "step", superseded_at_first)
    monkeypatch.setattr(ProgressLine, "tell", lambda _, *numbers: shown.append(numbers))

    call_command("reindex")

    assert capsys.readouterr().out.count("A running server is indexing as well.") == 1
    assert shown == [(0, 1)] * 4
    call_command("rebuild")
    assert shown[4:] == [(1, 1)]
