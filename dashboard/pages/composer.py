"""What the form to speak needs: where it goes, whom it may address. For the pages of conversations."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from conversations import rights
from conversations.fragments import hidden
from conversations.fragments.who import Who, who
from conversations.ids import new_id
from conversations.models import Agent, Conversation, Participant, User

MOST = 100  # names offered


@dataclass(frozen=True, slots=True)
class Composer:
    """A form to speak. `handler` is empty when nobody answers by themselves; `key` names the draft."""

    key: str
    action: str
    client_id: str
    me: Who
    handler: str
    names: list[str]
    is_new: bool = False


def for_conversation(request: HttpRequest, found: Conversation) -> Composer | None:
    """Answer the form of a conversation; None for who may not send."""
    if not may_speak(request):
        return None
    handler = found.handler.removeprefix("agent:")
    taking_part = Participant.objects.filter(conversation=found, kind="agent").values_list("name", flat=True)
    names = [*_entries(), *(name.removeprefix("agent:") for name in taking_part[:MOST])]
    return Composer(
        key=found.key,
        action=reverse("api-messages", args=[found.key]),
        client_id=new_id(),
        me=_me(request),
        handler=hidden.spell(handler),
        names=_clean(names),
    )


def for_new(request: HttpRequest) -> Composer | None:
    """Answer the form that begins a conversation; None for who may not send, or where no agent is served."""
    if not may_speak(request) or not (names := _clean(_entries())):
        return None
    action = reverse("api-messages", args=[new_id()])
    return Composer("", action, new_id(), _me(request), handler="", names=names, is_new=True)


def may_speak(request: HttpRequest) -> bool:
    """Tell whether this person may send messages at all."""
    return isinstance(request.user, User) and rights.may(request.user, "send")


def _me(request: HttpRequest) -> Who:
    principal = str(rights.principal_of(request.user))
    return who(principal, principal)


def _entries() -> list[str]:
    return list(Agent.objects.filter(is_entry=True).order_by("team", "name").values_list("name", flat=True)[:MOST])


def _clean(names: list[str]) -> list[str]:
    """Offer what can be read as it is, once."""
    return [name for name in dict.fromkeys(names) if hidden.is_clean(name)]
