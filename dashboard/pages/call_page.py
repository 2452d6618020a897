"""The page of one tool call, and the comparison of two; a POST of the page's form requests a replay (§3.4).
Its parts: `call_sections.py`, `replay_form.py`; live by `static/js/call-page.js`."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from conversations.access.audit import chain
from conversations.core import hidden_characters
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound, SwitchboardError
from conversations.events import epoch
from conversations.rendering import agent_colors
from conversations.runs.replay import request_replay
from conversations.tool_calls import call_record
from dashboard.pages import call_sections, replay_form
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import status_of
from dashboard.require_permission import require_permission


@require_safe
@require_permission("view")
def call(request: HttpRequest, id: str) -> HttpResponse:
    """Show one call; `?part=outcome` returns only what changes while it runs."""
    if request.GET.get("part") == "outcome":
        agent_colors.refresh_colors()
        recorded = call_record.find(id)
        return render_page(request, "partials/call_outcome.html", **_outcome_context(recorded))
    return _draw(request, id, {})


@require_POST
@require_permission("replay")
def create_replay(request: HttpRequest, id: str) -> HttpResponse:
    """Start a replay and redirect to its call (`do` is run or run-raw), or show what it would be (dry or dry-raw)."""
    posted = {name: str(value) for name, value in request.POST.items()}
    recorded = call_record.find(id)
    if posted.get("do") not in ("run", "run-raw"):
        return _draw(request, id, posted)
    try:
        replay = request_replay.request_replay(
            request.user, id,
            arguments=replay_form.posted_arguments(recorded, replay_form.current_eligibility(recorded), posted),
            reason=posted.get("reason", "").strip()[: chain.MAX_REASON], tool=posted.get("tool", ""),
            client_id=posted.get("client_id", "")[:100],
        )  # fmt: skip
    except (Conflict, Invalid, NotAllowed) as error:
        return _draw(request, id, posted, error)
    # Without a fragment of its own, the browser would keep the form's.
    return HttpResponseRedirect(reverse("call", args=[replay.call], fragment="main"))


@require_safe
@require_permission("view")
def compare(request: HttpRequest) -> HttpResponse:
    """Show what differs between two calls, `?a=` and `?b=`; with `?a=` alone, the calls to compare it with."""
    agent_colors.refresh_colors()
    ids = [request.GET.get(side, "").strip()[:64] for side in ("a", "b")]
    try:
        first, other = (call_record.find(id) if id else None for id in ids)
    except NotFound as error:
        return _asking(request, ids, error=error)
    if first is None or other is None:
        return _asking(request, ids, first)
    return render_page(
        request,
        "call_compare.html",
        sides=[call_sections.heading(first), call_sections.heading(other)],
        wanted=ids,
        parts=call_sections.compared(first, other),
        is_same_tool=first.row.schema == other.row.schema,
        epoch=epoch.current(),
        error="",
    )


def _asking(
    request: HttpRequest, ids: list[str], first: call_record.CallRecord | None = None, error: NotFound | None = None
) -> HttpResponse:
    return render_page(
        request,
        "call_compare.html",
        status=404 if error else 200,
        sides=None,
        first=call_sections.heading(first) if first else None,
        comparable=call_sections.comparable(first) if first else [],
        parts=[],
        epoch=epoch.current(),
        wanted=[hidden_characters.spelled_out(id) for id in ids],
        error=hidden_characters.spelled_out(error.sentence) if error else "",
    )


def _draw(
    request: HttpRequest, id: str, entered: dict[str, str], error: SwitchboardError | None = None
) -> HttpResponse:
    agent_colors.refresh_colors()
    recorded = call_record.find(id)
    eligibility = replay_form.current_eligibility(recorded)
    return render_page(
        request,
        "call.html",
        status=status_of(error),
        epoch=epoch.current(),
        **_outcome_context(recorded),
        link=request.build_absolute_uri(reverse("call", args=[recorded.row.id])),
        layers=call_sections.identity(recorded),
        ids=call_sections.ids(recorded, eligibility.facts),
        schema=recorded.row.schema or "",
        arguments=call_sections.arguments(recorded, eligibility.schema),
        replay=replay_form.form_context(request, recorded, eligibility, entered, error),
        bars=call_sections.bars(recorded, call_record.siblings(recorded)),
        inside=call_sections.lines(recorded, call_record.nested_events(recorded)),
        around=call_sections.lines(recorded, call_record.neighbouring_events(recorded)),
        raw=call_sections.raw(recorded),
        others=call_sections.rows(call_record.recent_calls(recorded)),
    )


def _outcome_context(recorded: call_record.CallRecord) -> dict[str, Any]:
    """Return the context of `partials/call_outcome.html`."""
    return {
        "heading": call_sections.heading(recorded),
        "outcome": call_sections.outcome(recorded),
        "decision": call_sections.decision(recorded),
        "replays": call_sections.rows(call_record.replays(recorded)),
        "head_seq": recorded.row.conversation.head_seq,  # as of the row: what ends it later is reported later
    }
