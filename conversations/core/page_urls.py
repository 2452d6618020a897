"""Where things of the record are on the pages, for whoever draws or answers a link to one."""

from functools import lru_cache

from django.urls import reverse

REMEMBERED = 4_096  # addresses: a list has fifty, and Django takes 0.1 ms to make one


@lru_cache(REMEMBERED)
def conversation_url(conversation: str) -> str:
    """Return where a conversation's transcript is."""
    return reverse("conversation", args=[conversation])


def event_url(conversation: str, seq: int) -> str:
    """Return where an event stands in its conversation's transcript."""
    return f"{conversation_url(conversation)}?event={seq}#e{seq}"
