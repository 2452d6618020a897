"""The first steps of a newcomer: watch the demo, decide its call, connect an agent. For the list and `/connect/`."""

from typing import NamedTuple

from django.db.models import Max

from conversations.core import page_urls, principals
from conversations.models import Approval, Conversation, Event


class FirstSteps(NamedTuple):
    """The progress of an installation's newcomers; addresses are empty if there is nothing to link to."""

    demo_href: str  # the newest conversation of the demo
    request_href: str  # its call that waits for a decision
    is_decided: bool  # somebody has decided one


def first_steps() -> FirstSteps | None:
    """Return the progress; None once there is a conversation of their own."""
    if Conversation.objects.filter(is_staged=False, is_demo=False).exists():
        return None
    newest = Conversation.objects.filter(is_staged=False, is_demo=True).order_by("-id").first()
    if newest is None:
        return FirstSteps("", "", False)
    requests = Approval.objects.filter(conversation__is_demo=True)
    oldest = (
        requests.filter(status="pending").order_by("asked_at").values_list("conversation__key", "asked_seq").first()
    )
    return FirstSteps(
        page_urls.conversation_url(newest.key),
        page_urls.event_url(*oldest) if oldest else "",
        requests.filter(status="decided").exists(),
    )


def newest_event() -> int:
    """Return the id of the newest event; a token's first event is searched for after it."""
    return int(Event.objects.aggregate(newest=Max("id"))["newest"] or 0)


def first_event_href(token: str, after: int) -> str:
    """Return the address of the first event with a greater id than `after` that came with a token; empty if there is
    none."""
    events = Event.objects.filter(id__gt=after, principal=str(principals.token_principal(token))).order_by("id")
    first = events.values_list("conversation__key", "seq").first()
    return page_urls.event_url(*first) if first else ""
