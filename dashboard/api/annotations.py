"""`/api/v1/conversations/{id}/annotations`: thumbs and notes on events. Used by both pages and programs (§3.6)."""

import hashlib

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse

from conversations.access import permissions
from conversations.access.action_context import find_conversation
from conversations.conversation import annotate
from conversations.core.errors import SwitchboardError
from conversations.events.log import annotation_reads
from conversations.events.log.records import Stored
from dashboard.api.openapi.operations import Operation, endpoint, up_to
from dashboard.api.request_input import MAX_SEQ, read_body, whole_number
from dashboard.api.schemas.annotations import Annotations, AnnotationStored, ToAnnotate
from dashboard.pages import errors

MAX_LIMIT, DEFAULT_LIMIT = 200, 50  # annotations of one answer: the maximum, and the default
_SEQ = {"type": "integer", "minimum": 1, "maximum": MAX_SEQ}


@endpoint(
    get=Operation(
        "List thumbs and notes, for all events or for one, newest first.",
        {200: Annotations},
        query={"about": _SEQ, "before": _SEQ, "limit": up_to(MAX_LIMIT, DEFAULT_LIMIT)},
    ),
    post=Operation(
        "Annotate an event with a thumb, a note, or both.",
        {201: AnnotationStored},
        body=ToAnnotate,
    ),
)
def annotations(request: HttpRequest, cid: str) -> HttpResponse:
    """List annotations, or store one: JSON gets 201 `{seq, about, url}`, the page's form is redirected to it."""
    if request.method == "POST":
        permissions.require(request.user, "annotate")
        return _store(request, cid)
    permissions.require(request.user, "view", f"conversation:{cid}")
    limit = whole_number(request, "limit", most=MAX_LIMIT, default=DEFAULT_LIMIT)
    before = whole_number(request, "before", most=MAX_SEQ, default=MAX_SEQ)
    about = whole_number(request, "about", most=MAX_SEQ, default=MAX_SEQ) if "about" in request.GET else None
    row = find_conversation(cid)
    page = annotation_reads.before(row.pk, before, about, limit + 1)
    items = [
        {"seq": item.seq, "about": item.about, "by": item.author, "at": item.at, "thumb": item.thumb, "text": item.text}
        for item in page[:limit]
    ]
    return JsonResponse({"items": items, "cursor": str(page[limit - 1].seq) if len(page) > limit else None})


def _store(request: HttpRequest, cid: str) -> HttpResponse:
    if request.content_type == "application/json":
        body = read_body(request, ToAnnotate)
        stored = _annotate(request, cid, body)
        return JsonResponse({"seq": stored.seq, "about": body.about, "url": _place(cid, body.about)}, status=201)
    body = _of_form(request)
    try:
        _annotate(request, cid, body)
    except SwitchboardError as error:
        return errors.page(request, error, "Go back: your note is still there.")
    return HttpResponseRedirect(_place(cid, body.about))


def _annotate(request: HttpRequest, cid: str, body: ToAnnotate) -> Stored:
    return annotate.annotate(request.user, cid, body.about, thumb=body.thumb, text=body.text, client_id=body.client_id)


def _place(cid: str, about: int) -> str:
    return f"{reverse('conversation', args=[cid])}?event={about}#e{about}"


def _of_form(request: HttpRequest) -> ToAnnotate:
    """Parse the page's form: the pressed button is the thumb, or the one that adds the note. Submitting the same form
    twice creates one annotation; submitting it with other contents creates another."""
    about, text = request.POST.get("about", ""), request.POST.get("text", "").replace("\r\n", "\n")
    thumb = request.POST.get("thumb")
    mark = hashlib.sha256(f"{request.POST.get('client_id', '')}\0{about}\0{thumb}\0{text}".encode()).hexdigest()
    return ToAnnotate.model_construct(
        about=int(about) if about.isascii() and about.isdecimal() and len(about) < 16 else 0,
        thumb=thumb,
        text=text,
        client_id=mark,
    )
