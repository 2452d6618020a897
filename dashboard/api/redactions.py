"""`/api/v1/redactions`: redactions of the record, previews, and requests that need a second person."""

from django.http import HttpRequest, JsonResponse

from conversations.core.micros import to_datetime
from conversations.models import RedactionRequest
from conversations.redaction import requests, scope
from conversations.redaction.requests import Submitted
from conversations.redaction.scope import RedactionScope
from dashboard.api.openapi.operations import Operation, endpoint
from dashboard.api.request_input import read_body
from dashboard.api.schemas import redaction as schemas
from dashboard.api.schemas.redaction import ToDecideRedaction, ToPreviewRedaction, ToRedact
from dashboard.require_permission import require_permission


@endpoint(
    get=Operation(
        "List redactions and retention rules that wait for a second admin.", {200: schemas.RedactionRequests}
    ),
    post=Operation(
        "Redact events, a conversation's id, a tool call or its field, everything about a person, or audit entries.",
        {201: schemas.RedactionOutcome, 202: schemas.RedactionOutcome},
        body=ToRedact,
        errors=(404, 409),
    ),
)
@require_permission("redact")
def redactions(request: HttpRequest) -> JsonResponse:
    """List requests (GET), or redact (POST): 201 with the result, 202 if a second person has to confirm it."""
    if request.method == "POST":
        body = read_body(request, ToRedact)
        submitted = requests.submit(request.user, _scope(body), body.reason)
        return JsonResponse(_outcome(submitted), status=201 if submitted.request is None else 202)
    return JsonResponse(
        {"items": [_request(pending_request) for pending_request in requests.pending()], "cursor": None}
    )


@endpoint(
    post=Operation(
        "Preview a redaction: what would be redacted, and where.",
        {200: schemas.RedactionPreview},
        body=ToPreviewRedaction,
        errors=(404,),
    )
)
@require_permission("redact")
def preview(request: HttpRequest) -> JsonResponse:
    """Return what would be redacted, without changing anything."""
    what = _scope(read_body(request, ToPreviewRedaction))
    places, entries = scope.preview(what), scope.preview_entries(what)
    items = [_place(place) for place in places]
    return JsonResponse({"items": items, "audit_entries": entries, "ids": scope.preview_ids(what)})


@endpoint(
    post=Operation(
        "Confirm or decline a redaction or a retention rule that somebody else requested.",
        {200: schemas.RedactionOutcome},
        body=ToDecideRedaction,
        errors=(404, 409),
    )
)
@require_permission("redact")
def decision(request: HttpRequest, number: int) -> JsonResponse:
    """Confirm or decline a request, and return the result."""
    body = read_body(request, ToDecideRedaction)
    if not body.confirm:
        requests.decline(request.user, number, body.reason)
        return JsonResponse({"redacted": [], "refused": [], "audit_entries": 0, "request": number})
    return JsonResponse(_outcome(Submitted(requests.confirm(request.user, number), None)) | {"request": number})


def _scope(body: ToPreviewRedaction) -> RedactionScope:
    events_or_call = (body.conversation_id, body.events, body.call_id, body.field)
    return RedactionScope(*events_or_call, body.person.removeprefix("user:"), body.words, body.entries, body.erase_id)


def _outcome(submitted: Submitted) -> dict[str, object]:
    done = submitted.outcome or scope.RedactionOutcome((), ())
    return {
        "redacted": [
            {"conversation_id": redacted.conversation, "events": list(redacted.seqs)} for redacted in done.redacted
        ],
        "refused": [{"conversation_id": key, "message": why} for key, why in done.refused],
        "audit_entries": done.entries,
        "request": submitted.request.pk if submitted.request else None,
    }


def _place(place: scope.RedactedPlace) -> dict[str, object]:
    fields = place._asdict()
    return {"conversation_id": fields.pop("conversation"), "events": list(fields.pop("seqs")), **fields}


def _request(pending_request: RedactionRequest) -> dict[str, object]:
    return {
        "id": pending_request.pk,
        "what": RedactionScope.from_json(pending_request.scope).name,
        "reason": pending_request.reason,
        "requested_by": pending_request.requested_by,
        "requested_at": to_datetime(pending_request.requested_at).isoformat(),
    }
