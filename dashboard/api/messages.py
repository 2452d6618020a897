"""`POST /api/v1/conversations/{id}/messages`: a person speaks. The one route of page and script (design 3.6)."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from conversations.actions import messages as actions
from conversations.errors import SwitchboardError
from conversations.log.events import Stored
from conversations.models import Conversation
from dashboard.api import bodies
from dashboard.api.shapes import ToSay
from dashboard.pages import errors
from dashboard.pages.allowed import takes

TITLE = 80  # characters of the first words that name a new conversation


@require_POST
@takes("send")
def messages(request: HttpRequest, cid: str) -> HttpResponse:
    """Say something: JSON answers 201 `{envelope_id, seq, url}`, the form of a page leads back to it.

    A conversation that is not there yet begins with these words. The same `client_id` again is the same message.
    """
    if request.content_type == "application/json":
        stored = _say(request, cid, bodies.read(request, ToSay))
        told = {"envelope_id": stored.event_id, "seq": stored.seq, "url": reverse("conversation", args=[cid])}
        return JsonResponse(told, status=201)
    try:
        stored = _say(request, cid, _of_form(request, cid))
    except SwitchboardError as error:
        return errors.page(request, error, "Go back: what you wrote is still there.")
    return HttpResponseRedirect(f"{reverse('conversation', args=[cid])}#e{stored.seq}")


def _say(request: HttpRequest, cid: str, said: ToSay) -> Stored:
    is_new = not Conversation.objects.visible().filter(key=cid).exists()
    return actions.post(
        request.user,
        cid,
        sender=said.sender,
        recipient=said.recipient,
        content=said.content,
        client_id=said.client_id,
        reason=said.reason,
        seen_seq=said.seen_seq,
        anyway=said.anyway,
        title=_title(said.content) if is_new else "",
    )


def _of_form(request: HttpRequest, cid: str) -> ToSay:
    """Read the page's form: `to` is an agent's bare name, or empty for whoever handles the conversation; `as` is a
    sender, empty for oneself, or `other` for the agent named in `as_name`."""
    to, speaker, name = (request.POST.get(field, "").strip() for field in ("to", "as", "as_name"))
    seen = request.POST.get("seen_seq", "")
    return ToSay.model_construct(
        sender=f"agent:{name.removeprefix('agent:')}" if speaker == "other" else speaker,
        recipient=f"agent:{to.removeprefix('agent:')}" if to else f"chat:{cid}",
        content=request.POST.get("content", "").replace("\r\n", "\n"),
        client_id=request.POST.get("client_id", ""),
        reason=request.POST.get("reason", ""),
        seen_seq=int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 16 else None,
        anyway=bool(request.POST.get("anyway")),
    )


def _title(content: str) -> str:
    """Name a conversation by its first line, whole words of it."""
    first = " ".join(content.strip().split("\n", 1)[0].split())
    if len(first) <= TITLE:
        return first
    return (first[:TITLE].rsplit(" ", 1)[0] if " " in first[:TITLE] else first[:TITLE]) + "…"
