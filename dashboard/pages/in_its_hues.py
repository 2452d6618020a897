"""Pages of one conversation are drawn in the hues that its agents have there."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from conversations.models import Conversation
from conversations.rendering import agent_colors, conversation_hues, participant_marks

Response = TypeVar("Response", bound=HttpResponseBase)


def in_its_hues(view: Callable[[HttpRequest, str], Response]) -> Callable[[HttpRequest, str], Response]:
    """Let a view take the hues of its conversation, and forget them after it."""

    @wraps(view)
    def drawn(request: HttpRequest, cid: str) -> Response:
        with participant_marks.in_conversation(participant_marks.EMPTY):
            return view(request, cid)

    return drawn


def take_hues_of(conversation: Conversation) -> None:
    """Draw in the hues of a conversation from here on, until the view ends."""
    agent_colors.refresh_colors()
    head = (conversation.head_seq, conversation.head_hash)
    participant_marks.take_hues(conversation_hues.of_conversation(conversation.key, head).hues())
