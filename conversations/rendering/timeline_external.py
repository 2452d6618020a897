"""Rows of the runs of external programs, as their events describe them: each run, the agent in it with its model calls,
and the tool calls within. No query."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from conversations.core import principals
from conversations.events import registry
from conversations.events.log.records import Stored
from conversations.events.log.timeline_reads import CallTimes
from conversations.rendering.event_rows import line
from conversations.rendering.timeline_rows import STATES, ModelTime, TimelineRow, call_row

ENDS = registry.run_ends()
HANDOFF = "agent.handoff"
STEPS = frozenset(("run.started", "run.waiting", HANDOFF, *ENDS))
LOOKED_AT = 32  # runs of an agent that began before a moment, of which one holds it

Body = Mapping[str, Any]  # JSON


class _Run(NamedTuple):
    """A run: its agents, the first of which began it, start and end (µs UTC; None: ongoing), what it is, its state and
    events, and what is in it."""

    agents: list[str]
    start: int
    end: int | None
    words: str
    state: str
    seqs: list[int]
    turns: list[ModelTime]
    calls: list[CallTimes]


def is_step(event: Stored, body: Body) -> bool:
    """Return whether an event is a step of a run elsewhere, which it names."""
    is_external = event.run is None and not principals.is_ours(event.principal)
    return is_external and event.kind in STEPS and bool(line(body.get("run_id")))


def rows(
    steps: Iterable[tuple[Stored, Body]], turns: Iterable[tuple[Stored, Body]], calls: Iterable[CallTimes]
) -> tuple[list[list[TimelineRow]], list[CallTimes], list[Stored]]:
    """Return a block of rows for each run and for each model call that is in none, and what else is in none: calls, and
    outputs. `turns` are model calls and outputs."""
    by_run: dict[tuple[str, str], list[tuple[Stored, Body]]] = {}
    for event, body in steps:
        by_run.setdefault((event.principal, line(body.get("run_id"))), []).append((event, body))
    runs = [_run(events) for events in by_run.values() if any(event.kind != HANDOFF for event, _ in events)]
    by_agent = _by_agent(runs)
    alone: list[list[TimelineRow]] = []
    outputs: list[Stored] = []
    for event, body in turns:
        run = _innermost(by_agent, _agent(body), event.at)
        if event.kind == "output":
            outputs += [event] if run is None else []
        elif run is not None:
            run.turns.append(ModelTime(max(run.start, event.at - _duration(body)), event.at, event.seq))
        else:
            alone.append([_model_call(event, body)])
    left: list[CallTimes] = []
    for call in calls:
        run = _innermost(by_agent, call.agent, call.began_at) if call.run is None else None
        (left if run is None else run.calls).append(call)
    return [*([*_block(run)] for run in runs), *alone], left, outputs


def _run(events: Sequence[tuple[Stored, Body]]) -> _Run:
    """Read a run. It began as its first event says, or, of an end alone, by the duration stated there; an imported one
    without an end ended with what the record has of it."""
    steps = [step for step in events if step[0].kind != HANDOFF]
    (first, body), (last, _) = steps[0], steps[-1]
    takers = [
        line(handoff.get("to_agent")).removeprefix("agent:") for event, handoff in events if event.kind == HANDOFF
    ]
    is_over, is_imported = last.kind in ENDS, principals.is_imported(last.principal)
    start = min(event.at for event, _ in events) - (_duration(body) if first.kind in ENDS else 0)
    end = max(event.at for event, _ in events) if is_over or is_imported else None
    state = STATES.get(last.kind.removeprefix("run."), "running")
    state = "unknown" if is_imported and not is_over else state
    agents = list(dict.fromkeys([_agent(body), *takers]))
    words = "imported run" if is_imported else "external run"
    return _Run(agents, start, end, words, state, [event.seq for event, _ in events], [], [])


def _by_agent(runs: Iterable[_Run]) -> dict[str, tuple[list[int], list[_Run]]]:
    """Return each agent's runs in the order of their starts, beside the starts."""
    agents: dict[str, list[_Run]] = {}
    for run in sorted(runs, key=lambda run: run.start):
        for agent in run.agents:
            agents.setdefault(agent, []).append(run)
    return {agent: ([run.start for run in mine], mine) for agent, mine in agents.items()}


def _innermost(by_agent: Mapping[str, tuple[list[int], list[_Run]]], agent: str, at: int) -> _Run | None:
    """Return the run of an agent that began last of those that hold a moment."""
    starts, runs = by_agent.get(agent, ([], []))
    upto = bisect_right(starts, at)
    before = reversed(runs[max(0, upto - LOOKED_AT) : upto])
    return next((run for run in before if run.end is None or at <= run.end), None)


def _block(run: _Run) -> Iterator[TimelineRow]:
    seqs = [*run.seqs, *(seq for call in run.calls for seq in (call.called_seq, call.finished_seq) if seq)]
    name = f"agent:{run.agents[0] or 'unknown'}"
    place = (run.start, run.end, min(seqs), max(seqs))
    yield TimelineRow("run", 0, name, run.words, *place, run.state)
    yield TimelineRow("agent", 1, name, "", *place, turns=tuple(run.turns))
    yield from (call_row(call, 2) for call in sorted(run.calls, key=lambda call: (call.began_at, call.called_seq)))


def _model_call(event: Stored, body: Body) -> TimelineRow:
    turn = ModelTime(event.at - _duration(body), event.at, event.seq)
    name = f"agent:{_agent(body) or 'unknown'}"
    state = "failed" if body.get("error") else ""
    return TimelineRow("agent", 0, name, "", turn.start, turn.end, event.seq, event.seq, state, (turn,))


def _agent(body: Body) -> str:
    return line(body.get("agent")).removeprefix("agent:")


def _duration(body: Body) -> int:
    """Return a stated duration in µs, 0 without one."""
    took = body.get("duration_ms")
    return int(took * 1000) if isinstance(took, int | float) and 0 <= took < 1e9 else 0
