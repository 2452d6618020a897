"""A conversation as a file over the API: who may, what it is called, and that JSON lines are audited."""

import asyncio
from typing import Any

import pytest
from django.urls import reverse

from conversations.core.db_threads import with_connection
from conversations.core.errors import NotAllowed
from conversations.models import AuditEntry
from dashboard.api import conversation_export
from tests.dashboard.pages.test_conversation_page import KEY, say
from tests.support.cast import client_of, person

pytestmark = pytest.mark.django_db(transaction=True)


def export_file(role: str, query: str, key: str = KEY) -> Any:
    """Ask for the file."""
    return client_of(person(role, role)).get(reverse("api-export", args=[key]) + query)


def body(answer: Any) -> str:
    """Read it."""

    async def read() -> bytes:
        return b"".join([piece async for piece in answer.streaming_content])

    return asyncio.run(read()).decode()


@pytest.mark.parametrize(
    ("form", "media_type", "ending", "words"),
    [
        ("markdown", "text/markdown; charset=utf-8", "md", "> wet"),
        ("text", "text/plain; charset=utf-8", "txt", "    wet"),
        ("trace", "application/json", "trace.json", '"traceEvents"'),
    ],
)
def test_a_viewer_reads_it(form: str, media_type: str, ending: str, words: str) -> None:
    say("wet")

    answer = export_file("viewer", f"?format={form}")

    assert answer["Content-Type"] == media_type
    assert answer["Content-Disposition"] == f'attachment; filename="flood.{ending}"'
    assert words in body(answer)


def test_json_lines_are_the_auditors_and_audited() -> None:
    say("wet")

    assert export_file("viewer", "").status_code == 403
    answer = export_file("auditor", "")

    assert '"format":"switchboard/3"' in body(answer)
    entry = AuditEntry.objects.filter(verb="export", outcome="done").latest("seq")
    assert (entry.principal, entry.target) == ("user:auditor", "conversation:flood")


def test_a_file_ends_where_its_reader_loses_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stays signed in with another role gets no further piece."""
    say("wet")
    monkeypatch.setattr(conversation_export, "TOGETHER", 1)
    auditor = person("audrey", "auditor")
    answer: Any = client_of(auditor).get(reverse("api-export", args=[KEY]))

    async def read() -> bytes:
        pieces = aiter(answer.streaming_content)
        first: bytes = await anext(pieces)
        await asyncio.to_thread(with_connection, auditor.roles.update, name="viewer")
        with pytest.raises(NotAllowed):
            await anext(pieces)
        return first

    assert b'"format":"switchboard/3"' in asyncio.run(read())


def test_another_format_is_refused_by_name() -> None:
    say("wet")

    answer = export_file("viewer", "?format=pdf")

    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "format"


def test_an_unknown_conversation_is_not_found() -> None:
    assert export_file("viewer", "?format=text", key="nowhere").status_code == 404


def test_a_name_of_any_characters_is_a_file_name() -> None:
    say("wet", key='a/b "c"\u202e')

    answer = export_file("viewer", "?format=text", key='a/b "c"\u202e')

    assert answer["Content-Disposition"] == 'attachment; filename="a-b-c.txt"'
