"""The graph of a conversation: who spoke to whom, how often. Called by the conversation page."""

from functools import lru_cache
from typing import NamedTuple

from conversations.events.log import annotation_reads
from conversations.events.log.annotation_reads import RecordedAnnotation
from conversations.events.log.interaction_counts import caller_at, callers_at
from conversations.events.log.interaction_counts import interactions as read
from conversations.models import Conversation
from conversations.rendering import conversation_graph
from conversations.rendering.annotation_marks import NONE, AnnotationMarks, marks_of
from conversations.rendering.conversation_graph import Between, Drawing, Edge
from dashboard.pages.playhead import version_of


class InteractionPage(NamedTuple):
    """The drawing, its table, and what was counted: from event `first` to `head`. `picked` is the selected event if an
    edge covers it."""

    drawing: Drawing
    edges: list[Edge]
    more: int  # rows that the table leaves out
    first: int
    head: int
    is_whole: bool  # all participants are drawn, as far as that goes
    picked: int
    picked_edge: Edge | None
    marks: dict[Between, AnnotationMarks]

    def marks_of(self, edge: Edge) -> AnnotationMarks:
        """Return the thumbs and notes of an edge's events."""
        return self.marks.get(edge[:3], NONE)

    def is_picked(self, edge: Edge) -> bool:
        """Return whether an edge covers the selected event."""
        return edge == self.picked_edge

    def seq_of(self, edge: Edge) -> int:
        """Return the event that an edge links to: the selected one, else its newest."""
        return self.picked if edge == self.picked_edge else edge.seq


class _Counted(NamedTuple):
    edges: list[Edge]
    by_seq: dict[int, Between]
    first: int


def graph_of(conversation: Conversation, *, event: int = 0, whole: bool = False, at: int = 0) -> InteractionPage:
    """Count and draw a conversation as it is now, or as it was after event `at`; the result is cached for all
    readers."""
    head, version = at or conversation.head_seq, version_of(conversation)
    counted = _counted(conversation.pk, conversation.key, head, version)
    picked = _edge_at(conversation.pk, counted, event) if event else None
    table = counted.edges[: conversation_graph.ROWS]
    if picked is not None and picked not in table:
        table = [*table[:-1], picked]
    most = conversation_graph.MAX_PARTICIPANTS if whole else conversation_graph.DRAWN
    drawing = _drawn(conversation.pk, conversation.key, head, version, most, picked)
    left = len(counted.edges) - len(table)
    marks = _marks(conversation.pk, conversation.key, head, version)
    return InteractionPage(drawing, table, left, counted.first, head, whole, event if picked else 0, picked, marks)


def _edge_at(conversation: int, counted: _Counted, seq: int) -> Edge | None:
    between = counted.by_seq.get(seq)
    if between is None and (call := caller_at(conversation, seq)):
        between = conversation_graph.between_of_call(*call)
    return next((edge for edge in counted.edges if edge[:3] == between), None)


@lru_cache(maxsize=64)
def _counted(conversation: int, key: str, head: int, _version: str) -> _Counted:
    history = read(conversation, key, head)
    by_seq = conversation_graph.betweens(history.events)
    return _Counted(conversation_graph.edges_of(by_seq, history.calls), by_seq, history.first)


@lru_cache(maxsize=64)
def _drawn(conversation: int, key: str, head: int, _version: str, most: int, always: Edge | None) -> Drawing:
    return conversation_graph.drawing_of(_counted(conversation, key, head, _version).edges, most, always)


@lru_cache(maxsize=64)
def _marks(conversation: int, key: str, head: int, _version: str) -> dict[Between, AnnotationMarks]:
    """Count the thumbs and notes of each edge's events."""
    annotations = annotation_reads.of_conversation(conversation, head)
    between = _counted(conversation, key, head, _version).by_seq
    calls = callers_at(conversation, annotations.keys() - between.keys())
    by_edge: dict[Between, list[RecordedAnnotation]] = {}
    for seq, those in annotations.items():
        edge = conversation_graph.between_of_call(*calls[seq]) if seq in calls else between.get(seq)
        if edge:
            by_edge.setdefault(edge, []).extend(those)
    return {edge: marks_of(those) for edge, those in by_edge.items()}
