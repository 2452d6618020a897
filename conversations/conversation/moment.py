"""A past moment of a conversation: its state and figures right after an event. Called by the playhead."""

from itertools import pairwise
from typing import NamedTuple

from conversations.conversation import live_state
from conversations.conversation.attention import Attention
from conversations.conversation.live_state import LiveState, LiveStateFacts, OpenRun
from conversations.events.log import past_state, run_history
from conversations.events.log.past_state import PastState
from conversations.models import Conversation, Event
from conversations.models.run import FAILED, UNFINISHED

AHEAD = 120  # events whose times a player gets at once


class PastMoment(NamedTuple):
    """What the playhead shows of event `seq`: its time (µs UTC), the states in words, figures, and the ms before each
    of the next events."""

    seq: int
    head: int
    at: int
    states: list[LiveState]
    figures: list[tuple[str, int]]
    gaps: list[int]


def moment_of(conversation: Conversation, seq: int, me: str) -> PastMoment:
    """Return a moment, as the reader `me` sees it. Raises Invalid far into a very long conversation."""
    state = past_state.state_at(conversation, seq)
    figures = [
        ("Messages", state.head.messages),
        ("Tool calls", state.head.tool_calls),
        ("Errors", state.head.errors),
        ("Participants", state.participants),
        ("Runs", len(state.runs)),
        ("Calls under way", state.open_calls),
        ("Approval requests waiting", len(state.pending)),
    ]
    states = live_state.states(_facts(conversation, state, me))
    return PastMoment(seq, conversation.head_seq, state.at, states, figures, _gaps(conversation, seq))


def _facts(conversation: Conversation, state: PastState, me: str) -> LiveStateFacts:
    runs = [run for run in state.runs if run.status in UNFINISHED and run.kind == "agent" and run.parent_call is None]
    agents = [run_history.working_agent(conversation.pk, run, state.seq) for run in runs]
    return LiveStateFacts(
        me=me,
        need=_need(conversation, state),
        owned=live_state.hold_at(conversation, state.head.owned_seq, state.head.owner),
        paused=live_state.hold_at(conversation, state.head.paused_seq),
        runs=[OpenRun(run.status, run.reason, agent, "") for run, agent in zip(runs, agents, strict=True)],
    )


def _need(conversation: Conversation, state: PastState) -> Attention | None:
    if state.pending:
        return Attention("approval", state.pending[0].asked_at)
    newest = next((run for run in reversed(state.runs) if run.kind == "agent" and run.parent_call is None), None)
    if newest is None or newest.status not in FAILED:
        return None
    ended = (
        Event.objects.filter(conversation=conversation, seq=newest.ended_seq or 0).values_list("at", flat=True).first()
    )
    return Attention("failed", ended or state.at)


def _gaps(conversation: Conversation, seq: int) -> list[int]:
    events = Event.objects.filter(conversation=conversation, seq__gte=seq).order_by("seq")
    times = list(events.values_list("at", flat=True)[: AHEAD + 1])
    return [max(0, later - earlier) // 1000 for earlier, later in pairwise(times)]
