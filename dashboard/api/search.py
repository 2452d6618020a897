"""`GET /api/v1/search`: the results of the search page, for programs (§3.6)."""

from typing import Annotated

from django.http import HttpRequest, JsonResponse
from pydantic import Field

from conversations import search as searching
from conversations.core import page_urls
from conversations.rendering import event_rows
from conversations.rendering.participant_marks import mark_for
from dashboard.api.openapi.operations import TEXT, Operation, endpoint
from dashboard.api.request_input import LIMIT, limit_of
from dashboard.api.schemas.core import MarkDrawn, Paged, Seq, Shape
from dashboard.require_permission import require_permission

FIELDS = ("q", "conversation", "kind", "sender", "since", "until")


class Excerpt(Shape):
    """A piece of an event's text; `marks` are the positions of the matches in it, `label` the field that it is from."""

    label: str
    text: str
    marks: list[tuple[int, int]]


class Hit(Shape):
    """A matching event; `at` is the time of its commit in µs UTC, `url` opens it in context."""

    conversation_id: str
    title: str
    seq: Seq
    kind: str
    at: int
    sender: str
    mark: MarkDrawn
    principal: str
    excerpts: list[Excerpt]
    url: str


class Hits(Paged[Hit]):
    """Hits, newest first; `cursor` is the `before` of the next page, null at the end."""

    looked_to: Annotated[
        int | None,
        Field(description="µs UTC: how far back the search got in its time limit; the cursor continues from there"),
    ]
    lag: Annotated[int, Field(description="recorded events that are not searchable yet")]


@endpoint(
    get=Operation(
        "Search events in all conversations, newest first.",
        {200: Hits},
        query={
            **dict.fromkeys((*FIELDS, "before"), TEXT),
            "q": TEXT | {"description": "words, quoted phrases, prefixes*"},
            "limit": LIMIT,
        },
    )
)
@require_permission("view")
def search(request: HttpRequest) -> JsonResponse:
    """Return hits newest first; `before` is a cursor."""
    limit = limit_of(request)
    query = searching.read(**{name: request.GET.get(name, "") for name in FIELDS})
    lag = searching.lag().events  # counted before: what is indexed meanwhile is among the hits
    results = searching.find(query, before=request.GET.get("before", ""), limit=limit)
    cut = searching.of_hits(results.hits, query)
    items = [_item(hit, excerpts).model_dump() for hit, excerpts in zip(results.hits, cut, strict=True)]
    answer = {"items": items, "cursor": results.cursor, "looked_to": results.looked_to, "lag": lag}
    return JsonResponse(answer)


def _item(hit: searching.SearchHit, cut: list[searching.Excerpt]) -> Hit:
    event = hit.event
    sender = event_rows.author(event_rows.parse_event(event))
    excerpts = [Excerpt(label=excerpt.label, text=excerpt.text, marks=list(excerpt.marks)) for excerpt in cut]
    return Hit(
        conversation_id=event.conversation,
        title=hit.title,
        seq=event.seq,
        kind=event.kind,
        at=event.at,
        sender=sender,
        mark=MarkDrawn(**mark_for(sender, event.principal).symbol_fields),
        principal=event.principal,
        excerpts=excerpts,
        url=page_urls.event_url(event.conversation, event.seq),
    )
