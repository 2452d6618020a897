"""Use a conversation's own agent colors while one of its pages is drawn."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from conversations.models import Conversation
from conversations.rendering import agent_colors, conversation_hues, participant_marks

Response = TypeVar("Response", bound=HttpResponseBase)


def with_agent_hues(view: Callable[[HttpRequest, str], Response]) -> Callable[[HttpRequest, str], Response]:
    """Let a view use the colors of its conversation, and reset them afterwards."""

    @wraps(view)
    def drawn(request: HttpRequest, cid: str) -> Response:
        with participant_marks.in_conversation(participant_marks.EMPTY):
            return view(request, cid)

    return drawn


def use_hues_of(conversation: Conversation) -> None:
    """Use the colors of a conversation until the view ends."""
    agent_colors.refresh_colors()
    head = (conversation.head_seq, conversation.head_hash)
    participant_marks.take_hues(conversation_hues.of_conversation(conversation.key, head).hues())
