"""The conversations page: the list, its filter, its older pages. Live by `static/js/conversation-list.js`."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from conversations import epoch, fleet
from conversations.fragments import hidden
from conversations.models import User
from dashboard.pages import composer
from dashboard.pages.frame import page as draw

PAGE = 60  # rows
MOST_NAMES = 50  # offered by the participant field


@require_safe
def conversations(request: HttpRequest) -> HttpResponse:
    """List the newest conversations, filtered by `?q=` and `?participant=`; `?part=list` answers the rows alone,
    `?part=beginning` the form that begins one, nothing while there is no agent to answer."""
    if request.GET.get("part") == "beginning":
        return draw(request, "partials/beginning.html", composer=composer.for_new(request))
    q, participant = request.GET.get("q", "").strip(), request.GET.get("participant", "").strip()
    before = request.GET.get("before", "")
    reader = request.user if isinstance(request.user, User) else None
    found = fleet.newest(q=q, participant=participant, before=before, limit=PAGE, reader=reader)
    context: dict[str, Any] = {
        "page": found,
        "drawn": fleet.drawn,
        "q": q,
        "participant": participant,
        "before": before,
        "is_filtered": bool(q or participant),
        "names": _names(found),
        "newest_href": _href(q, participant),
        "composer": composer.for_new(request),
        "may_begin": composer.may_speak(request),
        "older_href": _href(q, participant, found.cursor or ""),
    }
    is_part = request.GET.get("part") == "list"
    return draw(request, "partials/fleet.html" if is_part else "conversations.html", epoch=epoch.current(), **context)


def _names(found: fleet.Page) -> list[str]:
    """Offer the names in sight that can be read as they are."""
    names = {fleet.bare(name) for row in found.rows for name, _ in row.participants}
    return sorted(name for name in names if hidden.is_clean(name))[:MOST_NAMES]


def _href(q: str, participant: str, before: str = "") -> str:
    said = {"q": q, "participant": participant, "before": before}
    query = urlencode({name: value for name, value in said.items() if value})
    return reverse("conversations") + (f"?{query}" if query else "")
