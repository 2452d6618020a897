"""Runs that look stuck: the same call over and over, nothing for minutes, or few turns left. For pages and the list.

Asked when they are drawn, of runs that are running (each has a worker): three queries over indexes, whatever the length
of the history. Only a warning: a person decides.
"""

import time
from collections.abc import Collection
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, F, IntegerField, Max, OuterRef, Subquery

from conversations.models import Agent, Event, Run, ToolCall

NEAR = 500  # of the newest events, in which a run that goes on has one
QUIET = ("run.stopping", "run.queued")  # events of a run that are no progress of it


class Running(NamedTuple):
    """A run, when its newest event near the head was, when the oldest of those near it was, and its newest turn."""

    id: str
    agent: str
    conversation: int
    at: int | None
    edge: int | None
    turn: int | None


class Alarm(NamedTuple):
    """Why a run looks stuck: `kind` is repeats, silent or turns; `words` go after the agent's name."""

    run: str
    agent: str
    kind: str
    words: str


def alarms(conversations: Collection[int]) -> dict[int, Alarm]:
    """Answer the loudest alarm of each of these conversations that has one, by its id."""
    running = _running(conversations) if conversations else []
    if not running:
        return {}
    repeated, limits = _repeated([run.id for run in running]), _limits([run.agent for run in running])
    found: dict[int, Alarm] = {}
    for run in running:
        told = repeated.get(run.id) or _silent(run) or _near_its_limit(run, limits.get(run.agent, 0))
        if told:
            found[run.conversation] = Alarm(run.id, run.agent, *told)
    return found


def _running(conversations: Collection[int]) -> list[Running]:
    near = Event.objects.filter(
        conversation=OuterRef("conversation"), seq__gt=OuterRef("conversation__head_seq") - NEAR, run=OuterRef("id")
    ).order_by("-seq")
    edge = Event.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("conversation__head_seq") - NEAR)
    found = Run.objects.filter(conversation__in=list(conversations), status="running", kind="agent", parent_call=None)
    found = found.annotate(
        progress_at=Subquery(near.exclude(kind__in=QUIET).values("at")[:1]),
        edge_at=Subquery(edge.values("at")[:1]),
        turn=Subquery(near.filter(turn__isnull=False).values("turn")[:1], output_field=IntegerField()),
    )
    columns = ("id", "agent", "conversation_id", "progress_at", "edge_at", "turn")
    return [Running(*values) for values in found.values_list(*columns)]


def _repeated(runs: list[str]) -> dict[str, tuple[str, str]]:
    most = settings.CONFIG.stuck_same_calls
    calls = ToolCall.objects.filter(run__in=runs).exclude(arguments_digest="")
    counted = (
        calls.values("run", "agent", "name", "arguments_digest").annotate(times=Count("id")).filter(times__gte=most)
    )
    return {
        str(row["run"]): ("repeats", f"called {row['name'][:80]} {row['times']:,} times with the same arguments")
        for row in counted.order_by("times")
    }


def _silent(run: Running) -> tuple[str, str] | None:
    """Tell a run without progress. Where 500 newer events hide its last one, it is silent for as long as those take."""
    at = run.at or run.edge
    if at is None:
        return None
    silent_s = time.time() - at / 1e6
    if silent_s < settings.CONFIG.stuck_silence_s:
        return None
    return "silent", f"made no progress for {_span(silent_s)}"


def _near_its_limit(run: Running, limit: int) -> tuple[str, str] | None:
    left = settings.CONFIG.stuck_turns_left
    if run.turn is None or not left or limit <= left or run.turn < limit - left:
        return None
    return "turns", f"is in turn {run.turn} of at most {limit}"


def _limits(agents: list[str]) -> dict[str, int]:
    rows = Agent.objects.filter(name__in=agents, max_turns__gt=0)
    return dict(rows.values("name").annotate(most=Max(F("max_turns"))).values_list("name", "most"))


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
