"""The graph of a conversation: who spoke to whom how often. Called by the conversation page."""

from functools import lru_cache
from typing import NamedTuple

from conversations.events import epoch
from conversations.events.log.interaction_counts import interactions as read
from conversations.models import Conversation
from conversations.rendering import interaction_graph


class InteractionPage(NamedTuple):
    """The picture, its table, and what was counted: from event `first` to `head`."""

    drawing: interaction_graph.Drawing
    edges: list[interaction_graph.Edge]
    more: int  # rows that the table leaves out
    first: int
    head: int


def graph_of(conversation: Conversation) -> InteractionPage:
    """Count and draw a conversation as it is now; of one that is looked at by many, once."""
    return _graph(conversation.pk, conversation.key, conversation.head_seq, epoch.current())


@lru_cache(maxsize=64)
def _graph(conversation: int, key: str, head: int, _epoch: str) -> InteractionPage:
    history = read(conversation, key, head)
    edges = interaction_graph.edges_of(history.events, history.calls)
    table = edges[: interaction_graph.ROWS]
    return InteractionPage(interaction_graph.drawing_of(edges), table, len(edges) - len(table), history.first, head)
