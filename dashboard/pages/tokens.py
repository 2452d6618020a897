"""The tokens page, for admins: bearer tokens of programs and agents."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from conversations.access.accounts import command_tokens
from conversations.access.accounts.tokens import TOKEN_ROLES, make_token, revoke_token
from conversations.core import hidden_characters
from conversations.core.errors import SwitchboardError
from conversations.models import Token
from conversations.realtime.deployment import bounded
from dashboard.pages import form_error
from dashboard.require_permission import require_permission

ENTERED = ("name", "role", "agent")  # fields of the form
MAX_ROWS = 200  # rows of each list; a search finds the others


@require_permission("tokens")
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request: HttpRequest) -> HttpResponse:
    """List tokens; `?q=` searches names and agents. A POST makes a token and shows its secret once."""
    if request.method != "POST":
        return _draw(request)
    name, role, agent = (request.POST.get(field, "").strip() for field in ENTERED)
    try:
        secret = make_token(request.user, name, role, agent=agent)
    except SwitchboardError as error:
        return _draw(request, error)
    return _draw(request, secret=secret, secret_of=name)


@require_permission("tokens")
@require_POST
def revocations(request: HttpRequest) -> HttpResponse:
    """Revoke a token at once: by its `name`, or a command's token by its id, `command`."""
    name, command = request.POST.get("name", ""), request.POST.get("command", "")
    try:
        if command:
            command_tokens.revoke_command_token(request.user, command)
            return HttpResponseRedirect(reverse("tokens"))
        revoke_token(request.user, name)
    except SwitchboardError as error:
        return _draw(request, error)
    return HttpResponseRedirect(reverse("tokens", query={"revoked": name}))


def _draw(
    request: HttpRequest, error: SwitchboardError | None = None, *, secret: str = "", secret_of: str = ""
) -> HttpResponse:
    q = request.GET.get("q", "").strip()[:200]
    live, revoked = Token.objects.live(), Token.objects.revoked()
    entered = {name: request.POST.get(name, "") if error else "" for name in ENTERED}
    return form_error.draw(
        request,
        "tokens.html",
        error,
        entered=entered,
        fields=ENTERED,
        q=q,
        count=bounded(live),
        rows=[_row(token) for token in live.matching(q)[:MAX_ROWS]],
        revoked_count=bounded(revoked.matching(q)),
        revoked=[_row(token) for token in revoked.matching(q)[:MAX_ROWS]],
        commands=command_tokens.live(),
        most=MAX_ROWS,
        roles=TOKEN_ROLES,
        secret=secret,
        secret_of=secret_of,
        just_revoked=revoked.filter(name=request.GET.get("revoked", "")).values_list("name", flat=True).first() or "",
    )


def _row(token: Token) -> tuple[Token, str]:
    """Return a token and its agent's name, escaped."""
    return token, hidden_characters.spelled_out(token.agent if token.role == "agent" else "")
