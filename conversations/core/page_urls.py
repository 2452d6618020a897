"""Where things of the record are on the pages, for whoever draws or answers a link to one."""

from django.urls import reverse


def conversation_url(conversation: str) -> str:
    """Return where a conversation's transcript is."""
    return reverse("conversation", args=[conversation])


def event_url(conversation: str, seq: int) -> str:
    """Return where an event stands in its conversation's transcript."""
    return f"{conversation_url(conversation)}?event={seq}#e{seq}"
