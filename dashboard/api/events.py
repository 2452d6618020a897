"""`GET /api/v1/conversations/{id}/events`: the history, with its bodies inserted unchanged as text (§3.6)."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse

from conversations.access import permissions
from conversations.core.errors import Invalid, NotFound
from conversations.core.json_values import text_of
from conversations.events import log
from conversations.events.log.records import Stored
from conversations.models import Conversation
from dashboard.api.openapi.operations import Operation, endpoint, up_to
from dashboard.api.request_input import MAX_SEQ, whole_number
from dashboard.api.schemas import core

MAX_LIMIT, DEFAULT_LIMIT = 500, 100  # events of one answer: the maximum, and the default


class _ShownFields(msgspec.Struct):
    """The fields that a response contains beside the body, of any type, as external senders write them."""

    sender: Any = None
    agent: Any = None
    recipient: Any = None
    created_at: Any = None


_decoder = msgspec.json.Decoder(_ShownFields)


@endpoint(
    get=Operation(
        "Read events in order: those after a seq, those before one, or the newest.",
        {200: core.Events},
        query={
            "after": {"type": "integer", "minimum": 0, "maximum": MAX_SEQ},
            "before": {"type": "integer", "minimum": 1, "maximum": MAX_SEQ},
            "limit": up_to(MAX_LIMIT, DEFAULT_LIMIT),
        },
    )
)
def events(request: HttpRequest, cid: str) -> HttpResponse:
    """Return events in order.

    `cursor` is the seq to continue from in the same direction (by default backwards), null at the end.
    """
    permissions.require(request.user, "view", f"conversation:{cid}")
    limit = whole_number(request, "limit", most=MAX_LIMIT, default=DEFAULT_LIMIT)
    after = whole_number(request, "after", least=0, most=MAX_SEQ, default=0)
    before = whole_number(request, "before", most=MAX_SEQ, default=MAX_SEQ)
    head = Conversation.objects.visible().filter(key=cid).values_list("head_seq", flat=True).first()
    if head is None:
        raise NotFound(f"there is no conversation {cid[:80]!r}")
    if "after" not in request.GET:
        page = log.read_before(cid, before, limit)
        has_more = bool(page) and page[0].seq > 1
        return _answer(page, page[0].seq if has_more else None)
    if "before" in request.GET:
        raise Invalid("must not be combined with after", field="before")
    page = log.read_after(cid, after, limit)
    has_more = bool(page) and page[-1].seq < head
    return _answer(page, page[-1].seq if has_more else None)


def _answer(rows: Sequence[Stored], cursor: int | None) -> HttpResponse:
    items = ",".join(_item(event) for event in rows)
    cursor_json = "null" if cursor is None else f'"{cursor}"'
    return HttpResponse(f'{{"items":[{items}],"cursor":{cursor_json}}}', content_type="application/json")


def _item(event: Stored) -> str:
    fields = {
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        **_speaker_fields(event.body),
        "principal": event.principal,
        "event_id": event.event_id,
    }
    return f'{json.dumps(fields)[:-1]}, "body": {event.body}}}'


def _speaker_fields(body: str) -> dict[str, str | None]:
    """Return sender, recipient and time as stated in the body; null if one is not a string."""
    try:
        fields = _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        fields = _ShownFields()
    agent = f"agent:{fields.agent.removeprefix('agent:')}" if isinstance(fields.agent, str) and fields.agent else None
    return {
        "created_at": text_of(fields.created_at),
        "sender": text_of(fields.sender) or agent,
        "recipient": text_of(fields.recipient),
    }
