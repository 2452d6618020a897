"""The People page, for admins: accounts and their roles."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from conversations.access import permissions
from conversations.access.accounts import sign_in
from conversations.access.accounts.people import activate, create_person, deactivate, set_roles
from conversations.access.accounts.sign_in_links import VALID_HOURS, make_link
from conversations.access.grants import KINDS
from conversations.access.permissions import PURPOSES
from conversations.core.errors import SwitchboardError
from conversations.models import User
from conversations.models.people import ROLES
from dashboard.pages import grants_list
from dashboard.pages.base_context import render_page

GRANT = ("person", "what", "target", "until", "reason")  # fields of the form that gives one
DONE = {
    "roles": "Roles saved.",
    "activated": "Activated.",
    "deactivated": "Deactivated, and signed out everywhere.",
    "sign-out": "Signed out everywhere.",
}
View = Callable[..., HttpResponse]  # a request, and what the route names


def admins_only(view: View) -> View:
    """Let only admins in, and show errors on the People page."""

    @wraps(view)
    def checked(request: HttpRequest, **kwargs: str) -> HttpResponse:
        permissions.require(request.user, "people")
        try:
            return view(request, **kwargs)
        except SwitchboardError as error:
            if error.status in (401, 403):
                raise
            return _draw(request, status=error.status, error=error)

    return checked


@admins_only
@require_http_methods(["GET", "HEAD", "POST"])
def people(request: HttpRequest) -> HttpResponse:
    """List accounts; a POST creates one and shows its sign-in link once."""
    if request.method != "POST":
        return _draw(request)
    person = create_person(request.user, request.POST.get("name", ""), _roles(request))
    return _with_link(request, person.username)


@admins_only
@require_POST
def roles(request: HttpRequest, name: str) -> HttpResponse:
    """Set a person's roles to those ticked. Raises Conflict if they changed since the page was drawn."""
    set_roles(request.user, name, _roles(request), expected=request.POST.get("expected", "").split())
    return _back(name, "roles")


@admins_only
@require_POST
def activity(request: HttpRequest, name: str) -> HttpResponse:
    """Deactivate or activate a person."""
    is_active = request.POST.get("active") == "yes"
    act = activate if is_active else deactivate
    act(request.user, name)
    return _back(name, "activated" if is_active else "deactivated")


@admins_only
@require_POST
def link(request: HttpRequest, name: str) -> HttpResponse:
    """Make a sign-in link and show it, once."""
    return _with_link(request, name)


@admins_only
@require_POST
def sign_outs(request: HttpRequest, name: str) -> HttpResponse:
    """End every session of a person."""
    sign_in.sign_out_everywhere(request.user, name)
    return _back(name, "sign-out")


def _roles(request: HttpRequest) -> list[str]:
    return request.POST.getlist("role")


def _with_link(request: HttpRequest, name: str) -> HttpResponse:
    path = f"{reverse('sign-in-link')}?t={make_link(request.user, name)}"
    return _draw(request, link=request.build_absolute_uri(path), link_for=name)


def _back(name: str, done: str) -> HttpResponse:
    return HttpResponseRedirect(reverse("people", query={"done": done, "name": name}, fragment=name))


def _draw(
    request: HttpRequest,
    *,
    status: int = 200,
    error: SwitchboardError | None = None,
    link: str = "",
    link_for: str = "",
) -> HttpResponse:
    everybody = User.objects.prefetch_related("roles").order_by("username")
    rows = [(person, sorted(role.name for role in person.roles.all())) for person in everybody]
    posted = request.POST if error else QueryDict()
    return render_page(
        request,
        "people.html",
        valid_hours=VALID_HOURS,
        status=status,
        rows=rows,
        roles=ROLES,
        purposes=PURPOSES,
        error=error.sentence if error else "",
        entered={"name": posted.get("name", ""), "roles": posted.getlist("role")},
        grants=grants_list.listed(),
        kinds=KINDS,
        proposed=grants_list.proposed(),
        entered_grant={field: posted.get(field, "") for field in GRANT},
        link=link,
        link_for=link_for,
        done={request.GET.get("name", ""): DONE.get(request.GET.get("done", ""), "")},
    )
