"""The conversations page: the list, its filters, its older pages. Live by `static/js/conversation-list.js`."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from conversations.access import permissions
from conversations.conversation import conversation_list, conversation_row, participant_names, since_left, visits
from conversations.conversation.since_left import SinceLeft
from conversations.core import hidden_characters, letter_case
from conversations.events import epoch
from conversations.models import Agent, User
from conversations.rendering.participant_marks import mark_for_name
from dashboard.pages import composer, first_steps
from dashboard.pages.base_context import render_page

PAGE = 60  # rows
MAX_NAMES = 50  # offered by the participant field
MAX_FOUND = 8  # agents, and participants, that the command palette offers


@require_safe
def conversations(request: HttpRequest) -> HttpResponse:
    """List the newest conversations, by `?q=`, `?participant=` and `?state=`. `?part=list` returns only the rows,
    `?part=bulk` the control actions over a selection, `?part=beginning` the form that starts a conversation (empty if
    no agent is available), `?part=names` the agents and participants whose names contain `?q=`, as JSON."""
    if request.GET.get("part") == "names":
        return JsonResponse(_named(request.GET.get("q", "").strip()[:200]))
    if request.GET.get("part") == "beginning":
        return render_page(request, "partials/new_conversation.html", composer=composer.for_new(request))
    if request.GET.get("part") == "bulk":
        return render_page(request, "partials/bulk.html")
    q, participant = request.GET.get("q", "").strip(), request.GET.get("participant", "").strip()
    before, state = request.GET.get("before", ""), request.GET.get("state", "")
    reader = request.user if isinstance(request.user, User) else None
    page = conversation_list.newest_conversations(
        q=q, participant=participant, state=state, before=before, limit=PAGE, reader=reader
    )
    is_filtered = bool(q or participant or state)
    context: dict[str, Any] = {
        "page": page,
        "groups": None if is_filtered or before else conversation_list.grouped(page, reader),
        "labels": conversation_row.GROUPS,
        "drawn": conversation_row.drawn,
        "q": q,
        "participant": participant,
        "before": before,
        "state": state,
        "states": conversation_list.FILTERS,
        "is_filtered": is_filtered,
        "names": _names(page),
        "newest_href": _href(q, participant, state),
        "composer": composer.for_new(request),
        "may_begin": composer.may_speak(request),
        "older_href": _href(q, participant, state, page.cursor or ""),
    }
    is_part = request.GET.get("part") == "list"
    context["missed"] = None if is_part or is_filtered or before or reader is None else _missed(reader)
    context["steps"] = None if is_part or is_filtered or before else first_steps.shown(request)
    return render_page(
        request, "partials/fleet.html" if is_part else "conversations.html", epoch=epoch.current(), **context
    )


@require_POST
def dismissal(request: HttpRequest) -> HttpResponse:
    """Dismiss the summary of what happened since the reader left."""
    if isinstance(request.user, User):
        visits.catch_up(request.user.pk)
    return HttpResponseRedirect(reverse("conversations"))


def _missed(reader: User) -> SinceLeft | None:
    """Return what happened since the reader left; loading a page after a long absence starts a new summary."""
    since = visits.note(reader.pk)
    return since_left.since_left(since, str(permissions.principal_of(reader))) if since else None


def _names(page: conversation_list.ConversationPage) -> list[str]:
    """Return the participants on this page to offer as filters, without names that contain hidden characters."""
    names = {conversation_row.strip_prefix(name) for row in page.rows for name, _ in row.participants}
    return sorted(name for name in names if hidden_characters.is_clean(name))[:MAX_NAMES]


def _named(text: str) -> dict[str, list[dict[str, Any]]]:
    """Return agents with their pages, and participants with the conversations they take part in."""
    folded = letter_case.fold_name(text.replace("\0", ""))  # not in SQL: the databases disagree on case
    agents = [
        (team, name)
        for team, name in Agent.objects.order_by("name", "team").values_list("team", "name")
        if folded in letter_case.fold_name(name)
    ]
    return {
        "agents": [
            {
                "name": name,
                "team": team,
                "url": reverse("agent", args=[team, name]),
                "mark": mark_for_name(name).symbol_fields,
            }
            for team, name in agents[:MAX_FOUND]
            if hidden_characters.is_clean(team + name)
        ],
        "participants": [
            {"name": name, "url": _href("", name, "")} for name in participant_names.matching(text, MAX_FOUND)
        ],
    }


def _href(q: str, participant: str, state: str, before: str = "") -> str:
    params = {"q": q, "participant": participant, "state": state, "before": before}
    return reverse("conversations", query={name: value for name, value in params.items() if value})
