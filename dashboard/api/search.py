"""`GET /api/v1/search`: what the search page finds, for programs (design 3.6)."""

from typing import Annotated

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe
from pydantic import Field

from conversations import links
from conversations import search as searching
from conversations.fragments import faces
from dashboard.api.queries import limit_of
from dashboard.api.shapes import Paged, Seq, Shape
from dashboard.pages.allowed import takes

FIELDS = ("q", "conversation", "kind", "sender", "since", "until")


class Excerpt(Shape):
    """Some text of an event; `marks` are the places of what was found in it, `label` the field it is of."""

    label: str
    text: str
    marks: list[tuple[int, int]]


class Hit(Shape):
    """An event that was found; `at` is the commit in µs UTC, `url` opens it in context."""

    conversation_id: str
    title: str
    seq: Seq
    kind: str
    at: int
    sender: str
    principal: str
    excerpts: list[Excerpt]
    url: str


class Hits(Paged[Hit]):
    """Hits, newest first; `cursor` is the `before` of the next page, null at the end."""

    looked_to: Annotated[
        int | None,
        Field(description="µs UTC: so far back it looked in the time it takes; the cursor goes on from there"),
    ]
    lag: Annotated[int, Field(description="events that are recorded and not searchable yet")]


@require_safe
@takes("view")
def search(request: HttpRequest) -> JsonResponse:
    """Answer hits newest first: `?q=` words, "phrases" and beginnings*; `?conversation=`, `?kind=`, `?sender=`,
    `?since=`, `?until=`; `?before=` a cursor, `?limit=` (1 to 200)."""
    limit = limit_of(request)
    query = searching.read(**{name: request.GET.get(name, "") for name in FIELDS})
    found = searching.find(query, before=request.GET.get("before", ""), limit=limit)
    cut = searching.of_hits(found.hits, query)
    items = [_item(hit, some).model_dump() for hit, some in zip(found.hits, cut, strict=True)]
    answer = {"items": items, "cursor": found.cursor, "looked_to": found.looked_to, "lag": searching.lag().events}
    return JsonResponse(answer)


def _item(hit: searching.Hit, cut: list[searching.Excerpt]) -> Hit:
    event = hit.event
    excerpts = [Excerpt(label=one.label, text=one.text, marks=list(one.marks)) for one in cut]
    return Hit(
        conversation_id=event.conversation,
        title=hit.title,
        seq=event.seq,
        kind=event.kind,
        at=event.at,
        sender=faces.read(event).said.speaker,
        principal=event.principal,
        excerpts=excerpts,
        url=links.of_event(event.conversation, event.seq),
    )
