"""The graph of a conversation: who spoke to whom how often. Called by the conversation page."""

from functools import lru_cache
from typing import NamedTuple

from conversations import epoch
from conversations.fragments import exchanges
from conversations.log.exchanges import exchanges as read
from conversations.models import Conversation


class Graph(NamedTuple):
    """The picture, its table, and what was counted: from event `first` to `head`."""

    drawing: exchanges.Drawing
    edges: list[exchanges.Edge]
    more: int  # rows that the table leaves out
    first: int
    head: int


def graph_of(found: Conversation) -> Graph:
    """Count and draw a conversation as it is now; of one that is looked at by many, once."""
    return _graph(found.pk, found.key, found.head_seq, epoch.current())


@lru_cache(maxsize=64)
def _graph(conversation: int, key: str, head: int, _epoch: str) -> Graph:
    told = read(conversation, key, head)
    edges = exchanges.edges_of(told.events, told.calls)
    table = edges[: exchanges.ROWS]
    return Graph(exchanges.drawing_of(edges), table, len(edges) - len(table), told.first, head)
