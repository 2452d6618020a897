"""Where things of the record are on the pages, for whoever draws or answers a link to one."""

from django.urls import reverse


def event_url(conversation: str, seq: int) -> str:
    """Return where an event stands in its conversation's transcript."""
    return f"{reverse('conversation', args=[conversation])}?event={seq}#e{seq}"
