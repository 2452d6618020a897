"""A conversation as a trace for Perfetto and chrome://tracing: runs, agents, turns, calls and waits as slices.

The trace event format requires the complete events ("X") of one thread to nest; times are in µs. Agents are threads.
Where two slices of an agent overlap without nesting (replays, parallel calls), the later one goes to a further thread
of that agent. Called by exporters; it runs no query.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from conversations.core import hidden_characters
from conversations.events.log.timeline_reads import TimelineEvents
from conversations.rendering.conversation_timeline import TimelineLayout
from conversations.rendering.timeline_rows import TimelineRow

PROCESS = 1
RUNS = "Runs and waits"
NOBODY = "Tool calls"  # whose thread a call is on that tells no agent
Entry = dict[str, Any]  # of the format's JSON


class _Slice(NamedTuple):
    thread: str
    name: str
    category: str
    start: int
    end: int
    facts: Mapping[str, object]


def trace(title: str, key: str, read: TimelineEvents, layout: TimelineLayout) -> dict[str, Any]:
    """Return the trace as a JSON object."""
    slices = list(_slices(read, layout))
    threads = _Threads()
    entries = [
        _complete(part, threads.place(part)) for part in sorted(slices, key=lambda part: (part.start, -part.end))
    ]
    entries += [_instant(row, threads.of(_name(row.name))) for row in layout.rows if row.kind == "message"]
    about: Entry = {"conversation_id": key, "first_event": read.first, "last_event": read.head}
    return {
        "traceEvents": [*_names(title, threads), *entries],
        "displayTimeUnit": "ms",
        "otherData": about | _limits(read),
    }


def _limits(read: TimelineEvents) -> Entry:
    """Return what the trace cannot show."""
    left_out: Entry = {"left_out": f"events 1 to {read.first - 1}"} if read.first > 1 else {}
    return left_out if read.is_timed else left_out | {"times": "the record has none: each is the number of an event"}


def _slices(read: TimelineEvents, layout: TimelineLayout) -> Iterator[_Slice]:
    callers = {call.called_seq: call.agent for call in read.calls}
    for row in layout.rows:
        end = row.end if row.end is not None else layout.last
        facts: Entry = {"event": row.seq, "last_event": row.last_seq}
        facts |= {"state": row.state} if row.state else {}
        facts |= {"unfinished": True} if row.end is None else {}
        if row.kind in ("run", "wait", "queue"):
            words = f"{row.words} of {_name(row.name)}" if row.kind == "run" else row.words
            yield _Slice(RUNS, _line(words), row.kind, row.start, end, facts)
        elif row.kind == "agent":
            yield _Slice(_name(row.name), _name(row.name), "agent", row.start, end, _with(facts, "stage", row.words))
            for turn in row.turns:
                yield _Slice(_name(row.name), "model turn", "model", turn.start, turn.end, {"event": turn.seq})
        elif row.kind == "call":
            yield _Slice(_line(callers.get(row.seq, "")) or NOBODY, _line(row.name), "tool", row.start, end, facts)


def _with(facts: Entry, name: str, words: str) -> Entry:
    return facts | ({name: _line(words)} if words else {})


class _Threads:
    """The threads of each name, in the order of first use, with the open slices of each."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._by_name: dict[str, list[int]] = {}
        self._open: dict[int, list[int]] = {}  # the ends of the slices around the next one, outermost first

    def of(self, name: str) -> int:
        """Return the first thread of a name."""
        return self._by_name[name][0] if name in self._by_name else self._add(name)

    def place(self, part: _Slice) -> int:
        """Return a thread on which a slice nests; slices come in order of their starts, longer ones first."""
        self.of(part.thread)
        for thread in self._by_name[part.thread]:
            ends = self._open[thread]
            while ends and ends[-1] <= part.start:
                ends.pop()
            if not ends or part.end <= ends[-1]:
                break
        else:
            thread = self._add(part.thread)
        self._open[thread].append(part.end)
        return thread

    def _add(self, name: str) -> int:
        mine = self._by_name.setdefault(name, [])
        self.names.append(f"{name} ({len(mine) + 1})" if mine else name)
        mine.append(len(self.names))
        self._open[len(self.names)] = []
        return len(self.names)


def _complete(part: _Slice, thread: int) -> Entry:
    at: Entry = {"ph": "X", "pid": PROCESS, "tid": thread, "ts": part.start, "dur": max(0, part.end - part.start)}
    return {"name": part.name, "cat": part.category, **at, "args": dict(part.facts)}


def _instant(row: TimelineRow, thread: int) -> Entry:
    at: Entry = {"ph": "i", "s": "t", "pid": PROCESS, "tid": thread, "ts": row.start}
    return {"name": "message", "cat": "message", **at, "args": {"event": row.seq, "text": _line(row.words)}}


def _names(title: str, threads: _Threads) -> Sequence[Entry]:
    process: Entry = {"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": _line(title)}}
    named: list[Entry] = [
        {"ph": "M", "pid": PROCESS, "tid": number, "name": "thread_name", "args": {"name": name}}
        for number, name in enumerate(threads.names, 1)
    ]
    ordered: list[Entry] = [
        {"ph": "M", "pid": PROCESS, "tid": number, "name": "thread_sort_index", "args": {"sort_index": number}}
        for number in range(1, len(threads.names) + 1)
    ]
    return [process, *named, *ordered]


def _name(sender: str) -> str:
    return _line(sender.partition(":")[2] or sender)


def _line(text: str) -> str:
    return " ".join(hidden_characters.spelled_out(text[:200]).split())
