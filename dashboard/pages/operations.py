"""The state of the deployment: processes, Redis, posts and the database, reloaded by `static/js/polling-part.js`."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from conversations.models import Quarantine
from conversations.realtime import deployment as state_of
from dashboard.pages.base_context import render_page
from dashboard.pages.quarantine import rows_of
from dashboard.require_permission import require_permission

QUARANTINED = 10  # messages shown here; the rest has a page


@require_permission("metrics")
@require_safe
def ops(request: HttpRequest) -> HttpResponse:
    """Show the state; `?part=state` returns only what changes, `?stream=` filters Redis streams by name."""
    stream = request.GET.get("stream", "").strip()[:250]
    return render_page(
        request,
        "partials/ops_state.html" if request.GET.get("part") == "state" else "ops.html",
        now=state_of.state(stream),
        words=stream,
        part_href=reverse("ops", query={"part": "state"} | ({"stream": stream} if stream else {})),
        quarantined=rows_of(Quarantine.objects.open(), QUARANTINED),
    )
