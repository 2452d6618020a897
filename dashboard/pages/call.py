"""One tool call: its page, two of them compared, and the form that makes it again (design 3.4)."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from conversations import epoch, hues, recorded_call
from conversations.actions import replays as actions
from conversations.errors import Conflict, Invalid, NotAllowed, NotFound, SwitchboardError
from conversations.fragments import hidden
from dashboard.pages import call_parts, replay_parts
from dashboard.pages.allowed import takes
from dashboard.pages.errors import status_of
from dashboard.pages.frame import page


@require_safe
@takes("view")
def call(request: HttpRequest, id: str) -> HttpResponse:
    """Draw one call; `?part=outcome` only what changes while it runs."""
    if request.GET.get("part") == "outcome":
        hues.refresh()
        one = recorded_call.find(id)
        return page(request, "partials/call_outcome.html", **_live(one))
    return _draw(request, id, {})


@require_POST
@takes("replay")
def replays(request: HttpRequest, id: str) -> HttpResponse:
    """Draw what a replay would be (`do` is dry or dry-raw), or begin it (run or run-raw) and go to the new call."""
    posted = {name: str(value) for name, value in request.POST.items()}
    one = recorded_call.find(id)
    if posted.get("do") not in ("run", "run-raw"):
        return _draw(request, id, posted)
    try:
        asked = actions.replay(
            request.user, id, arguments=replay_parts.given(one, replay_parts.today_of(one), posted),
            reason=posted.get("reason", "").strip()[: actions.MOST_REASON], tool=posted.get("tool", ""),
            client_id=posted.get("client_id", "")[:100],
        )  # fmt: skip
    except (Conflict, Invalid, NotAllowed) as error:
        return _draw(request, id, posted, error)
    return HttpResponseRedirect(reverse("call", args=[asked.call]))


@require_safe
@takes("view")
def compare(request: HttpRequest) -> HttpResponse:
    """Draw what differs between two calls, `?a=` and `?b=`."""
    hues.refresh()
    wanted = [request.GET.get(side, "").strip()[:64] for side in ("a", "b")]
    if not all(wanted):
        return _asking(request, wanted)
    try:
        one, other = map(recorded_call.find, wanted)
    except NotFound as error:
        return _asking(request, wanted, error)
    return page(
        request, "call_compare.html", sides=[call_parts.head(one), call_parts.head(other)], wanted=wanted,
        parts=call_parts.compared(one, other), is_same_tool=one.row.schema == other.row.schema, epoch=epoch.current(),
        error="",
    )  # fmt: skip


def _asking(request: HttpRequest, wanted: list[str], error: NotFound | None = None) -> HttpResponse:
    return page(
        request, "call_compare.html", status=404 if error else 200, sides=None, parts=[], epoch=epoch.current(),
        wanted=[hidden.spell(id) for id in wanted], error=hidden.spell(error.message) if error else "",
    )  # fmt: skip


def _draw(
    request: HttpRequest, id: str, entered: dict[str, str], error: SwitchboardError | None = None
) -> HttpResponse:
    hues.refresh()
    one = recorded_call.find(id)
    today = replay_parts.today_of(one)
    return page(
        request, "call.html", status=status_of(error), epoch=epoch.current(), **_live(one),
        link=request.build_absolute_uri(reverse("call", args=[one.row.id])),
        layers=call_parts.identity(one, today.facts), schema=one.row.schema or "",
        arguments=call_parts.arguments(one, today.schema),
        replay=replay_parts.part(request, one, today, entered, error),
        bars=call_parts.bars(one, recorded_call.siblings(one)), inside=call_parts.lines(one, recorded_call.inside(one)),
        around=call_parts.lines(one, recorded_call.around(one)), raw=call_parts.raw(one),
        others=[call_parts.row(found) for found in recorded_call.lately(one)],
    )  # fmt: skip


def _live(one: recorded_call.Recorded) -> dict[str, Any]:
    return {
        "call": call_parts.head(one), "outcome": call_parts.outcome(one), "decision": call_parts.decision(one),
        "replays": [call_parts.row(found) for found in recorded_call.replays(one)],
        "head": one.row.conversation.head_seq,  # as of the row: what ends it later is told later
    }  # fmt: skip
