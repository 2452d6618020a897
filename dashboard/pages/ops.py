"""The state of the deployment: processes, Redis, posts, the database. It renews itself by `static/js/live-part.js`."""

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from conversations import ops as state_of
from conversations.models import Quarantine
from dashboard.pages.allowed import takes
from dashboard.pages.frame import page
from dashboard.pages.quarantine import rows_of

QUARANTINED = 10  # messages shown here; the rest has a page


@takes("metrics")
@require_safe
def ops(request: HttpRequest) -> HttpResponse:
    """Show it; `?part=state` answers what changes, `?stream=` picks Redis streams by name."""
    words = request.GET.get("stream", "").strip()[:250]
    asked = {"part": "state", "stream": words} if words else {"part": "state"}
    return page(
        request,
        "partials/ops_state.html" if request.GET.get("part") == "state" else "ops.html",
        now=state_of.state(words),
        words=words,
        part_href=f"{reverse('ops')}?{urlencode(asked)}",
        quarantined=rows_of(Quarantine.objects.open(), QUARANTINED),
    )
