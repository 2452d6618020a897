"""`POST /api/v1/conversations/{id}/messages`: send a message (`post_message.post`). The form of the pages
(`templates/partials/composer.html`) posts here, too (§3.6)."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse

from conversations.conversation import post_message
from conversations.core.errors import SwitchboardError
from conversations.core.plain_text import short_title
from conversations.events.log.records import Stored
from conversations.models import Conversation
from dashboard.api.openapi.operations import Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas.core import AnsweredMeanwhile, PostedMessage, ToPostMessage
from dashboard.pages import errors
from dashboard.require_permission import require_permission


@endpoint(
    post=Operation(
        "Send a message as yourself or, with a grant, as another sender; a new id creates a conversation.",
        {201: PostedMessage, 409: AnsweredMeanwhile},
        body=ToPostMessage,
    )
)
@require_permission("send")
def messages(request: HttpRequest, cid: str) -> HttpResponse:
    """Send a message: JSON gets 201 `{envelope_id, seq, url}`, the page's form is redirected to it.

    A conversation that does not exist yet is created. The same `client_id` again is the same message.
    """
    if request.content_type == "application/json":
        stored = _say(request, cid, read_body(request, ToPostMessage))
        payload = {"envelope_id": stored.event_id, "seq": stored.seq, "url": reverse("conversation", args=[cid])}
        return JsonResponse(payload, status=201)
    try:
        stored = _say(request, cid, _of_form(request, cid))
    except SwitchboardError as error:
        return errors.page(request, error, "Go back: your message is still there.")
    return HttpResponseRedirect(f"{reverse('conversation', args=[cid])}#e{stored.seq}")


def _say(request: HttpRequest, cid: str, message: ToPostMessage) -> Stored:
    is_new = not Conversation.objects.visible().filter(key=cid).exists()
    return post_message.post(
        request.user,
        cid,
        sender=message.sender,
        recipient=message.recipient,
        content=message.content,
        client_id=message.client_id,
        reason=message.reason,
        seen_seq=message.seen_seq,
        anyway=message.anyway,
        when=message.when,
        title=short_title(message.content.strip().partition("\n")[0]) if is_new else "",
    )


def _of_form(request: HttpRequest, cid: str) -> ToPostMessage:
    """Parse the page's form: `to` is an agent's bare name, or empty for the conversation's handler; `as` is a sender,
    empty for oneself, or `other` for the agent named in `as_name`."""
    to, speaker, name = (request.POST.get(field, "").strip() for field in ("to", "as", "as_name"))
    seen = request.POST.get("seen_seq", "")
    return ToPostMessage.model_construct(
        sender=f"agent:{name.removeprefix('agent:')}" if speaker == "other" else speaker,
        recipient=f"agent:{to.removeprefix('agent:')}" if to else f"chat:{cid}",
        content=request.POST.get("content", "").replace("\r\n", "\n"),
        client_id=request.POST.get("client_id", ""),
        reason=request.POST.get("reason", ""),
        seen_seq=int(seen) if seen.isascii() and seen.isdecimal() and len(seen) < 16 else None,
        anyway=bool(request.POST.get("anyway")),
        when=request.POST.get("when") or "after_run",
    )
