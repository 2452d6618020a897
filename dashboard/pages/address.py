"""What the address of a page names: a conversation by its id, events by their numbers."""

from django.http import HttpRequest

from conversations.core.errors import NotFound
from conversations.models import Conversation


def conversation_of(key: str) -> Conversation:
    """Return the conversation under this id. Raises `NotFound`, in words for a page."""
    row = Conversation.objects.visible().filter(key=key).first()
    if row is None:
        raise NotFound(
            "There is no conversation with this ID. It may be mistyped, or the database was restored from a backup."
        )
    return row


def number_of(request: HttpRequest, name: str) -> int | None:
    """Read a seq of the query. What is no seq counts as absent: a mangled link still opens the page."""
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
