"""The playhead of a conversation: a moment in its past, `?at=N` in every view. Called by the conversation page."""

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations.access import permissions
from conversations.conversation import moment
from conversations.core import hidden_characters
from conversations.core.errors import Invalid
from conversations.events import epoch
from conversations.models import Conversation, Event
from conversations.rendering import richtext, timestamps
from conversations.rendering.timestamps import When
from dashboard.pages.address import conversation_of, number_of
from dashboard.pages.base_context import render_page


class ShownMoment(NamedTuple):
    """What the bar and the panel show of a moment. `why_not`: why its state is not available."""

    at: int
    head: int
    time: When | None
    states: list[tuple[str, str, Markup]]
    figures: list[tuple[str, int]]
    gaps: list[int]
    why_not: str = ""


def seq_of(request: HttpRequest, conversation: Conversation) -> int:
    """Return the event number of the requested moment, at most the head; 0 for the present."""
    return min(number_of(request, "at") or 0, conversation.head_seq)


def version_of(conversation: Conversation) -> str:
    """Return what a kept drawing of a past moment depends on beside that moment: a later event may redact one before
    it."""
    return f"{epoch.current()} {conversation.head_seq}"


def moment_at(request: HttpRequest, conversation: Conversation, at: int) -> ShownMoment:
    """Return a moment as this reader may see it."""
    me = str(permissions.principal_of(request.user))
    try:
        then = moment.moment_of(conversation, at, me)
    except Invalid as error:
        time = Event.objects.filter(conversation=conversation, seq=at).values_list("at", flat=True).first()
        return ShownMoment(at, conversation.head_seq, timestamps.moment(time), [], [], [], str(error))
    states = [
        (state.glyph, hidden_characters.spelled_out(state.words), richtext.inline(state.reason))
        for state in then.states
    ]
    return ShownMoment(at, then.head, timestamps.moment(then.at), states, then.figures, then.gaps)


@require_safe
def playhead(request: HttpRequest, cid: str) -> HttpResponse:
    """Return the bar and the figures of the moment `?at=N`. A part of the page."""
    row = conversation_of(cid)
    then = moment_at(request, row, seq_of(request, row) or row.head_seq)
    return render_page(request, "partials/playhead_moved.html", conversation=row, moment=then)
