"""The overview strip beside the lanes: the whole conversation at a glance. Called by the conversation page."""

import re
from functools import lru_cache
from typing import NamedTuple

from conversations.core import principals
from conversations.events import epoch, registry
from conversations.events.log import overview_reads
from conversations.events.log.overview_reads import Sample
from conversations.models import Conversation
from conversations.rendering.participant_marks import mark_for

HEIGHT = 1000  # places of the strip
_NAMED = re.compile(r'"(sender|agent|from_agent|by)"\s*:\s*"([^"\\]{1,200})"')


class OverviewColumn(NamedTuple):
    """The events of one hue in the strip (no hue for people): their positions, 0 to HEIGHT."""

    hue: int | None
    places: list[float]


class LaneOverview(NamedTuple):
    """The context of `templates/partials/lane_overview.html` up to event `head`; failures and waits by their position.

    One shape per column, not per event: the browser lays out the strip with every change of the lanes beside it.
    """

    head: int
    columns: list[OverviewColumn]
    dash_height: float
    failed: list[float]
    waiting: list[float]
    height: int = HEIGHT


def overview_of(conversation: Conversation) -> LaneOverview:
    """Draw the strip of a conversation as it is now."""
    return _overview(conversation.pk, conversation.head_seq, epoch.current())


@lru_cache(maxsize=32)
def _overview(conversation: int, head: int, _epoch: str) -> LaneOverview:
    events = overview_reads.read(conversation, head)
    height = max(1.5, HEIGHT / max(1, len(events.samples)) * 0.7)
    return LaneOverview(
        head,
        _columns(events.samples, head),
        round(min(height, 12.0), 1),
        _places(events.failed, head),
        _places(events.waiting, head),
    )


def _columns(samples: list[Sample], head: int) -> list[OverviewColumn]:
    columns: dict[int, OverviewColumn] = {}
    for sample in samples:
        mark = mark_for(_sender(sample))
        if mark.kind != "system":
            column = columns.setdefault(mark.hue or 0, OverviewColumn(mark.hue, []))
            column.places.append(_place(sample.seq, head))
    return [columns[number] for number in sorted(columns)]


def _sender(sample: Sample) -> str:
    """Return the sender of an event, as far as the beginning of its body names one."""
    named: dict[str, str] = dict(reversed(_NAMED.findall(sample.beginning)))
    event_type = registry.find(sample.kind)
    if event_type and (author := event_type.author_of(sample.principal, named.get("by", ""))):
        return author
    agent = named.get("agent") or named.get("from_agent")
    if "sender" in named:
        return named["sender"]
    if agent:
        return f"agent:{agent.removeprefix('agent:')}"
    return sample.principal if principals.is_ours(sample.principal) else "system"


def _places(seqs: list[int], head: int) -> list[float]:
    return [_place(seq, head) for seq in seqs]


def _place(seq: int, head: int) -> float:
    return round((seq - 1) * HEIGHT / max(1, head), 1)
