"""A download of evidence ends where its reader loses the right to export."""

import asyncio
import io
from typing import Any

import pytest
from django.urls import reverse

from conversations.core.db_threads import with_connection
from conversations.core.errors import NotAllowed
from dashboard.api import evidence
from tests.dashboard.pages.test_conversation_page import KEY, say
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "path", [reverse("api-evidence-of-filter") + "?state=open", reverse("api-evidence", args=[KEY])]
)
def test_it_ends_where_its_reader_loses_the_right(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Whoever stays signed in with another role gets no further piece."""
    say("wet")
    monkeypatch.setattr(evidence.bundle, "write", lambda *_, **__: io.BytesIO(b"salts"))
    monkeypatch.setattr(evidence, "PIECE", 1)
    auditor = person("audrey", "auditor")
    answer: Any = client_of(auditor).get(path)

    async def read() -> bytes:
        pieces = aiter(answer.streaming_content)
        first: bytes = await anext(pieces)
        await asyncio.to_thread(with_connection, auditor.roles.update, name="viewer")
        with pytest.raises(NotAllowed):
            await anext(pieces)
        return first

    assert asyncio.run(read()) == b"s"
