"""The strip beside the lanes: the whole conversation at a glance. Called by the conversation page."""

import re
from functools import lru_cache
from typing import NamedTuple

from conversations.core import principals
from conversations.events import epoch
from conversations.events.log import overview_reads
from conversations.events.log.overview_reads import Sample
from conversations.models import Conversation
from conversations.rendering.participant_marks import mark_for

HEIGHT = 1000  # places of the strip
COLUMNS = 11  # one for people, one for each hue of agents
_NAMED = re.compile(r'"(sender|agent|from_agent)"\s*:\s*"([^"\\]{1,200})"')


class OverviewDash(NamedTuple):
    """An event in the strip: how far down (of HEIGHT), in which column, in which hue; none for people."""

    y: float
    column: int
    hue: int | None


class LaneOverview(NamedTuple):
    """What templates/partials/lane_overview.html draws, up to event `head`. Failures and waits by how far down."""

    head: int
    dashes: list[OverviewDash]
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
    dashes = [dash for sample in events.samples if (dash := _dash(sample, head))]
    height = max(1.5, HEIGHT / max(1, len(events.samples)) * 0.7)
    return LaneOverview(
        head, dashes, round(min(height, 12.0), 1), _places(events.failed, head), _places(events.waiting, head)
    )


def _dash(sample: Sample, head: int) -> OverviewDash | None:
    mark = mark_for(_sender(sample))
    if mark.kind == "system":
        return None
    return OverviewDash(_place(sample.seq, head), mark.hue or 0, mark.hue)


def _sender(sample: Sample) -> str:
    """Return who an event is of, as far as its beginning names them."""
    named: dict[str, str] = dict(reversed(_NAMED.findall(sample.beginning)))
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
