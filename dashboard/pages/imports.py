"""Import in the browser: upload a file, read its summary, then confirm the import."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from conversations.core import hidden_characters
from conversations.core.errors import Invalid, NotAllowed, SwitchboardError
from conversations.events.log.import_staging import EXISTS
from conversations.import_export.detect_format import NAMES
from dashboard.browser_import import MAX_FILE, MAX_PIECE, MAX_PROBLEMS, ImportJob, jobs
from dashboard.pages.base_context import render_page
from dashboard.pages.errors import status_of
from dashboard.require_permission import require_permission

MAX_ROWS = 200  # conversations of a summary


@require_permission("publish")
@require_http_methods(["GET", "HEAD", "POST"])
def imports(request: HttpRequest) -> HttpResponse:
    """Show the form; with `?job=` the state of an upload (`&part=state` returns only that). A POST checks a file
    (`do=check`) or imports it (`do=import`), whether it was uploaded in pieces or is in the form itself."""
    if request.method != "POST":
        job = _shown_job(request)
        if request.GET.get("part") == "state":
            return render_page(request, "partials/import_state.html", **_state_context(job))
        return _draw(request, job=job)
    try:
        job = _job(request, request.POST.get("job", "")) or _sent_whole(request)
        jobs.start(
            job,
            request.user,
            is_dry=request.POST.get("do") != "import",
            is_update=bool(request.POST.get("update")),
            key=request.POST.get("key", "").strip(),
        )
    except SwitchboardError as error:
        return _draw(request, error)
    return HttpResponseRedirect(reverse("imports", query={"job": job.id}))


@require_permission("publish")
@require_POST
def pieces(request: HttpRequest) -> HttpResponse:
    """Store the next piece of an upload: `?name=`, `?size=` and `?offset=` in bytes; `?job=` for all but the first."""
    name, job = request.GET.get("name", "")[:1000], request.GET.get("job", "")[:100]
    try:
        size, offset = (_whole(request, name) for name in ("size", "offset"))
        taken = jobs.receive(job, request.user, name, size, offset=offset, piece=request.body)
    except SwitchboardError as error:
        return JsonResponse({"error": error.as_dict()}, status=error.status)
    return JsonResponse({"job": taken.id, "received": taken.received})


def _whole(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise Invalid("must be a number of bytes", field=name)
    return int(text)


def _sent_whole(request: HttpRequest) -> ImportJob:
    """Store a file that the form contains; the limit of a request's size bounds it."""
    file = request.FILES.get("file")
    if file is None or not file.size:
        raise Invalid("must be a file that is not empty", field="file")
    job, sent = "", 0
    for piece in file.chunks(MAX_PIECE):
        taken = jobs.receive(job, request.user, file.name or "", file.size, offset=sent, piece=piece)
        job, sent = taken.id, taken.received
    return taken


def _shown_job(request: HttpRequest) -> ImportJob | None:
    id_ = request.GET.get("job", "")[:100]
    return jobs.look(id_, request.user) if id_ else None


def _job(request: HttpRequest, id_: str) -> ImportJob | None:
    return jobs.of(id_[:100], request.user) if id_ else None


def _state_context(job: ImportJob | None) -> dict[str, Any]:  # what a template draws
    """Return the template context of an upload's state; texts of the file are escaped."""
    shown = hidden_characters.spelled_out
    return {
        "job": job,
        "rows": [
            (item, shown(item.conversation_id), job.existing.get(item.conversation_id)) for item in job.items[:MAX_ROWS]
        ]
        if job
        else [],
        "is_new_id_needed": job is not None and (job.code == EXISTS or not all(job.existing.values())),
        "problems": [shown(line) for line in job.problems[:MAX_PROBLEMS]] if job else [],
        "failure": shown(job.error) if job else "",
        "most": MAX_ROWS,
    }


def _draw(request: HttpRequest, error: SwitchboardError | None = None, *, job: ImportJob | None = None) -> HttpResponse:
    if isinstance(error, NotAllowed):
        raise error
    return render_page(
        request,
        "imports.html",
        status=status_of(error),
        formats=NAMES,
        largest=MAX_FILE,
        piece=MAX_PIECE,
        fault=hidden_characters.spelled_out(error.sentence) if error else "",
        state_href=reverse("imports", query={"job": job.id, "part": "state"}) if job else "",
        **_state_context(job),
    )
