"""Where things of the record are on the pages, for whoever draws or answers a link to one."""

from django.urls import reverse


def of_event(conversation: str, seq: int) -> str:
    """Answer where an event stands in its conversation's transcript."""
    return f"{reverse('conversation', args=[conversation])}?event={seq}#e{seq}"
