"""The first steps for a newcomer, shown on the list until dismissed."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from conversations.conversation import first_steps, visits
from conversations.conversation.first_steps import FirstSteps
from conversations.models import User
from dashboard.pages.base_context import render_page


def shown(request: HttpRequest) -> FirstSteps | None:
    """Return the first steps to show; None once the reader dismissed them, or once they have data of their own."""
    is_dismissed = isinstance(request.user, User) and visits.has_dismissed_steps(request.user.pk)
    return None if is_dismissed else first_steps.first_steps()


@require_safe
def steps(request: HttpRequest) -> HttpResponse:
    """Return the first steps as they are now; they follow what the newcomer does."""
    return render_page(request, "partials/first_steps.html", steps=first_steps.first_steps())


@require_POST
def dismissal(request: HttpRequest) -> HttpResponse:
    """Dismiss the first steps for this person."""
    if isinstance(request.user, User):
        visits.dismiss_steps(request.user.pk)
    return HttpResponseRedirect(reverse("conversations"))
