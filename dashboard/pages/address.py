"""Read what a page's address names: a conversation by its id, an event by its number."""

from django.http import HttpRequest

from conversations.core.errors import NotFound
from conversations.models import Conversation


def conversation_of(key: str) -> Conversation:
    """Return the conversation with this id. Raises NotFound with a message for a page."""
    row = Conversation.objects.visible().filter(key=key).first()
    if row is None:
        raise NotFound(
            "There is no conversation with this ID. It may be mistyped, or the database was restored from a backup."
        )
    return row


def number_of(request: HttpRequest, name: str) -> int | None:
    """Read an event number (`seq`) from the query; None if it is missing or invalid, so a mangled link still opens the
    page."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
