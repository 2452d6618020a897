"""Detect runs that look stuck: the same call or text repeatedly, no progress for minutes, or few turns left. Used by
pages and the list, when they are rendered, and by alerts, every 15 seconds (`alerts.conditions`).

Of running runs (each has a worker), with four indexed queries, whatever the length of the history, one more for
each run that may have few turns left, and one for each that looks stuck (who is active in it). It is only a warning: a
person decides. The thresholds are settings, `stuck_*` of `dashboard/config.py`.
"""

import json
import time
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from django.conf import settings
from django.db.models import Count, F, IntegerField, Max, OuterRef, Subquery
from django.db.models.functions import Length

from conversations.events import payload, registry
from conversations.events.log.bounded_reads import FETCHED
from conversations.events.log.run_history import working_agent
from conversations.models import Agent, Event, Run, ToolCall, Turn

LEGIBLE, MAX_TURNS = 20_000, 1_000  # characters of an answer's event, and such events, that are compared
NEAR = 500  # of the newest events, in which a run that goes on has one
QUIET = registry.names_with("no_progress")


class Running(NamedTuple):
    """A run, when it last made progress, as far as an event near the head shows it, when the oldest event near the head
    was (both µs UTC), and its newest turn."""

    id: str
    agent: str
    conversation: int
    queued_seq: int
    progress_at: int | None
    edge_at: int | None
    turn: int | None  # counts those inside calls, and each message of an answer


class StuckRun(NamedTuple):
    """Why a run looks stuck: `kind` is repeats, silent or turns; `words` follow the name of `agent`, the
    active one; `since`: µs UTC."""

    run: str
    agent: str
    kind: str
    words: str
    since: int  # its last progress


def stuck_runs(conversations: Collection[int]) -> dict[int, StuckRun]:
    """Return the most serious warning for each of these conversations that has one, by its id."""
    running = _running(conversations) if conversations else []
    if not running:
        return {}
    repeated = _said_again(running) | _repeated([run.id for run in running])
    limits = _limits([run.agent for run in running])
    by_conversation: dict[int, StuckRun] = {}
    for run in running:
        reason = repeated.get(run.id) or _silent(run) or _near_its_limit(run, limits.get(run.agent, 0))
        if reason:
            agent = working_agent(run.conversation, Run(id=run.id, agent=run.agent, queued_seq=run.queued_seq))
            since = run.progress_at or run.edge_at or 0
            by_conversation[run.conversation] = StuckRun(run.id, agent, *reason, since=since)
    return by_conversation


def _running(conversations: Collection[int]) -> list[Running]:
    near = Event.objects.filter(
        conversation=OuterRef("conversation"), seq__gt=OuterRef("conversation__head_seq") - NEAR, run=OuterRef("id")
    ).order_by("-seq")
    edge = Event.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("conversation__head_seq") - NEAR)
    runs = Run.objects.filter(conversation__in=list(conversations), status="running", kind="agent", parent_call=None)
    runs = runs.annotate(
        progress_at=Subquery(near.exclude(kind__in=QUIET).values("at")[:1]),
        edge_at=Subquery(edge.values("at")[:1]),
        turn=Subquery(near.filter(turn__isnull=False).values("turn")[:1], output_field=IntegerField()),
    )
    columns = ("id", "agent", "conversation_id", "queued_seq", "progress_at", "edge_at", "turn")
    return [Running(*values) for values in runs.values_list(*columns)]


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


def _said_again(running: list[Running]) -> dict[str, tuple[str, str]]:
    """Return runs whose turns repeat the same text: a loop without tool calls, such as agents that hand over to each
    other. Considers only the newest events, and only those no larger than most answers."""
    near = Event.objects.filter(conversation__in=[run.conversation for run in running])
    near = near.filter(seq__gt=F("conversation__head_seq") - NEAR, kind="output", run__in=[run.id for run in running])
    turns = near.annotate(size=Length("body")).filter(size__lt=LEGIBLE).values_list("run", "body").order_by("-pk")
    counts = Counter((run, *_words(body)) for run, body in turns[:MAX_TURNS])
    most = settings.CONFIG.stuck_same_calls
    return {
        str(run): ("repeats", f"said the same {times:,} times")
        for (run, _, words), times in counts.most_common()
        if words and times >= most
    }


def _words(body: str) -> tuple[str, str]:
    """Return the speaker and the text."""
    fields = json.loads(body)
    return str(fields.get("agent") or ""), str(fields.get("text") or "").strip()


def _silent(run: Running) -> tuple[str, str] | None:
    """Return a warning for a run without progress. If 500 newer events hide its last one, it counts as silent for as
    long as those took."""
    at = run.progress_at or run.edge_at
    if at is None:
        return None
    silent_s = time.time() - at / 1e6
    if silent_s < settings.CONFIG.stuck_silence_s:
        return None
    return "silent", f"has made no progress for {_span(silent_s)}"


def _near_its_limit(run: Running, limit: int) -> tuple[str, str] | None:
    left = settings.CONFIG.stuck_turns_left
    if run.turn is None or not left or limit <= left or run.turn < limit - left:  # its own are no more than that
        return None
    own = _own_turns(run)
    return None if own < limit - left else ("turns", f"is on turn {own} of {limit}")


def _own_turns(run: Running) -> int:
    """Count the answers of a run's own model: only these have a limit, not those inside its calls."""
    turns = Turn.objects.filter(conversation=run.conversation, seq__gt=run.queued_seq, run=run.id).values("seq")
    events = Event.objects.filter(conversation=run.conversation, seq__in=turns, kind="model.turn")
    bodies = events.values_list("body", flat=True).iterator(FETCHED)
    return sum(not payload.decoded(body).get("parent_call") for body in bodies)


def _limits(agents: list[str]) -> dict[str, int]:
    rows = Agent.objects.filter(name__in=agents, max_turns__gt=0)
    return dict(rows.values("name").annotate(most=Max(F("max_turns"))).values_list("name", "most"))


def _span(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
