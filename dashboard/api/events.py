"""`GET /api/v1/conversations/{id}/events`: the history, its bodies spliced in as the text they are (design 3.6)."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from conversations import log, rights
from conversations.errors import Invalid, NotFound
from conversations.log.events import Stored
from conversations.models import Conversation
from dashboard.api.queries import whole_number

MOST = 500  # events of one answer
SEQS = 2**53


class _Told(msgspec.Struct):
    """What an answer says of a body besides the body: of any type, as foreign senders write it."""

    sender: Any = None
    agent: Any = None
    recipient: Any = None
    created_at: Any = None


_decoder = msgspec.json.Decoder(_Told)


@require_safe
def events(request: HttpRequest, cid: str) -> HttpResponse:
    """Answer events in order: `?after=` a seq, or `?before=` one, else the newest; `?limit=` (1 to 500).

    `cursor` is the seq to go on from in the same direction (without a direction: backwards), null at the end.
    """
    rights.require(request.user, "view", f"conversation:{cid}")
    limit = whole_number(request, "limit", most=MOST, default=100)
    after = whole_number(request, "after", least=0, most=SEQS, default=0)
    before = whole_number(request, "before", most=SEQS, default=SEQS)
    head = Conversation.objects.visible().filter(key=cid).values_list("head_seq", flat=True).first()
    if head is None:
        raise NotFound(f"no conversation {cid[:80]!r}")
    if "after" not in request.GET:
        found = log.read_before(cid, before, limit)
        has_more = bool(found) and found[0].seq > 1
        return _answer(found, found[0].seq if has_more else None)
    if "before" in request.GET:
        raise Invalid("expected after or before, not both", field="before")
    found = log.read_after(cid, after, limit)
    has_more = bool(found) and found[-1].seq < head
    return _answer(found, found[-1].seq if has_more else None)


def _answer(found: Sequence[Stored], cursor: int | None) -> HttpResponse:
    items = ",".join(_item(event) for event in found)
    told = "null" if cursor is None else f'"{cursor}"'
    return HttpResponse(f'{{"items":[{items}],"cursor":{told}}}', content_type="application/json")


def _item(event: Stored) -> str:
    facts = {
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        **_said(event.body),
        "principal": event.principal,
        "event_id": event.event_id,
    }
    return f'{json.dumps(facts)[:-1]}, "body": {event.body}}}'


def _said(body: str) -> dict[str, str | None]:
    """Answer who said it to whom and when, by their own account; null where that is no text."""
    try:
        told = _decoder.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        told = _Told()
    agent = f"agent:{told.agent.removeprefix('agent:')}" if isinstance(told.agent, str) and told.agent else None
    return {
        "created_at": _text(told.created_at),
        "sender": _text(told.sender) or agent,
        "recipient": _text(told.recipient),
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
