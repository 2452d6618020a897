"""The form to send a message: as whom, to whom, and what will happen to it. For the pages of conversations."""

from dataclasses import dataclass, field
from typing import NamedTuple

from django.http import HttpRequest
from django.urls import reverse

from conversations.access import grants, permissions
from conversations.access.grants import ALL, SPEAK_AS
from conversations.conversation import delivery_preview
from conversations.conversation.delivery_preview import DeliveryPreview
from conversations.conversation.post_message import own_name
from conversations.core import hidden_characters
from conversations.core.ids import new_id
from conversations.models import Agent, Conversation, Participant, User
from conversations.rendering.participant_marks import ParticipantMark, mark_for

MAX_NAMES = 100  # names offered
NOTHING = DeliveryPreview("", waits=False)
OTHER = "other"  # of whom to speak as: an agent that is typed


class Speaker(NamedTuple):
    """A sender that the reader may use, with its name for the page."""

    sender: str
    name: str


@dataclass(frozen=True, slots=True)
class Composer:
    """A message form. `handler` is empty if no agent answers by default; `key` names the browser's draft; `speakers`
    are other senders the reader may use, by heading; `prospect` is what happens to a message sent as oneself to the
    handler."""

    key: str
    action: str
    client_id: str
    me: ParticipantMark
    handler: str
    names: list[str]
    is_new: bool = False
    taking_part: list[str] = field(default_factory=list)
    speakers: dict[str, list[Speaker]] = field(default_factory=dict)
    prospect: DeliveryPreview = NOTHING
    prospects: str = ""
    """the address that tells another one"""


def for_conversation(request: HttpRequest, conversation: Conversation) -> Composer | None:
    """Return the form for a conversation; None for readers who may not send."""
    if not may_speak(request):
        return None
    handler = conversation.handler.removeprefix("agent:")
    taking_part = Participant.objects.filter(conversation=conversation, kind="agent").values_list("name", flat=True)
    here = _clean([name.removeprefix("agent:") for name in taking_part[:MAX_NAMES]])
    return Composer(
        key=conversation.key,
        action=reverse("api-messages", args=[conversation.key]),
        client_id=new_id(),
        me=_me(request),
        handler=hidden_characters.spelled_out(handler),
        names=_clean([*here, *_entries()]),
        taking_part=here,
        speakers=_speakers(request, here),
        prospect=prospect(request, conversation, sender="", recipient=""),
        prospects=reverse("conversation-prospect", args=[conversation.key]),
    )


def for_new(request: HttpRequest) -> Composer | None:
    """Return the form that starts a conversation; None for readers who may not send, or if no agent is available."""
    if not may_speak(request) or not (names := _clean(_entries())):
        return None
    action = reverse("api-messages", args=[new_id()])
    return Composer("", action, new_id(), _me(request), handler="", names=names, is_new=True)


def prospect(
    request: HttpRequest, conversation: Conversation, *, sender: str, recipient: str, when: str = "after_run"
) -> DeliveryPreview:
    """Return what will happen to a message that the reader sends as `sender` (empty: as themselves) to an agent's bare
    name, or to everyone if `recipient` is empty."""
    principal = permissions.principal_of(request.user)
    to = f"agent:{recipient.removeprefix('agent:')}" if recipient else f"chat:{conversation.key}"
    preview = delivery_preview.preview_delivery(
        conversation, by=str(principal), sender=sender or own_name(principal), recipient=to, when=when
    )
    words, at_work = (hidden_characters.spelled_out(text) for text in (preview.words, preview.at_work))
    return preview._replace(words=words, at_work=at_work)


def may_speak(request: HttpRequest) -> bool:
    """Return whether the reader may send messages."""
    return isinstance(request.user, User) and permissions.has_permission(request.user, "send")


def _speakers(request: HttpRequest, here: list[str]) -> dict[str, list[Speaker]]:
    """Return the senders that the reader's grants allow, by heading: participants, available agents, others."""
    held = grants.granted_targets(request.user, SPEAK_AS)
    if not held:
        return {}
    has_all = ALL in held
    served = Agent.objects.order_by("team", "name").values_list("name", flat=True)[:MAX_NAMES]
    granted = sorted(target.removeprefix("agent:") for target in held if target.startswith("agent:"))
    listed = {"Participants": here, "Available": _clean([*served]), "By grant": _clean(granted)}
    speakers: dict[str, list[Speaker]] = {}
    seen: set[str] = set()
    for heading, names in listed.items():
        may = [name for name in names if name not in seen and (has_all or f"agent:{name}" in held)]
        seen.update(may)
        if may:
            speakers[heading] = [Speaker(f"agent:{name}", name) for name in may]
    others = [Speaker("system", "the system")] if has_all or "system" in held else []
    others += [Speaker(OTHER, "another agent…")] if has_all else []
    return speakers | ({"Others": others} if others else {})


def _me(request: HttpRequest) -> ParticipantMark:
    principal = str(permissions.principal_of(request.user))
    return mark_for(principal, principal)


def _entries() -> list[str]:
    return list(Agent.objects.filter(is_entry=True).order_by("team", "name").values_list("name", flat=True)[:MAX_NAMES])


def _clean(names: list[str]) -> list[str]:
    """Return the names that contain no hidden characters, each once."""
    return [name for name in dict.fromkeys(names) if hidden_characters.is_clean(name)]
