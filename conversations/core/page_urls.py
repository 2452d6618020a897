"""Addresses of pages for things in the record, for whatever draws or returns a link."""

from functools import lru_cache

from django.urls import reverse

REMEMBERED = 4_096  # addresses: a list has fifty, and Django takes 0.1 ms to make one


@lru_cache(REMEMBERED)
def conversation_url(conversation: str) -> str:
    """Return the address of a conversation's transcript."""
    return reverse("conversation", args=[conversation])


def event_url(conversation: str, seq: int) -> str:
    """Return the address of an event in its conversation's transcript."""
    return f"{conversation_url(conversation)}?event={seq}#e{seq}"
