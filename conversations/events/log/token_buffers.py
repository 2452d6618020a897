"""Buffer the tokens of our own runs and join them (§3.1). Also merges the tokens of one publish request.

What is due in any run is stored in one transaction: a transaction for each piece of 300 answers would cost thirty times
as much. Other events do not wait for it: they are stored first, and at most `SLICE` parts are stored together.
"""

from collections.abc import Sequence

import msgspec

from conversations.events.log.records import NewEvent
from conversations.events.log.write_job import FULL, Job

PATIENCE = 0.05  # seconds between two stored parts of a turn, at most
EVERY = 0.01  # seconds between two transactions that store buffered tokens
SLICE = 100  # parts in one of them


RunKey = tuple[str | None, str]  # conversation, run


class TokenBuffer:
    """The buffered tokens of one turn, as the jobs that brought them."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.sent_at = 0.0

    def take(self, now: float) -> list[Job]:
        """Return the buffered tokens as one job, which resolves every caller's future."""
        if not self.jobs:
            return []
        job, rest = self.jobs[0], self.jobs[1:]
        parts = [_pieces_of(job) for job in self.jobs]
        pieces = parts[0] if not rest else [piece for part in parts for piece in part]
        last_index = _index_of(self.jobs[-1]) + len(parts[-1]) - 1
        self.jobs, self.sent_at = [], now
        joined = [waiter.on_done for waiter in rest if waiter.on_done is not None]
        if job.open_tokens is not None:
            event = job.open_tokens.event_of(pieces, last_index)
            return [Job([event], job.on_done, len(event.body), job.in_same_transaction, joined)]
        return [job._replace(events=[_joined_token(job.events[0], pieces, last_index)], joined=joined)]

    def is_due(self, now: float) -> bool:
        """Return whether the buffer is old or large enough to be stored."""
        return bool(self.jobs) and (now >= self.sent_at + PATIENCE or sum(map(_size_of, self.jobs)) >= FULL)


class TokenBuffers:
    """The buffered turns of one of the writer's threads. Used only by that thread."""

    def __init__(self) -> None:
        self._runs: dict[RunKey, dict[int | None, TokenBuffer]] = {}  # by turn
        self._next_at = 0.0  # what is due is stored then, not before

    def join(self, jobs: Sequence[Job], now: float, *, is_last: bool) -> list[Job]:
        """Return the jobs to store now, in order: tokens are joined or buffered; any other event of their run comes
        after them."""
        ready: list[Job] = []
        for job in jobs:
            if (place := _place_of(job)) is not None:
                run, turn = place
                self._runs.setdefault(run, {}).setdefault(turn, TokenBuffer()).jobs.append(job)
                continue
            if self._runs:
                for run in {(e.conversation, e.run) for e in job.events if e.run}:
                    ready += [part for buffer in self._runs.get(run, {}).values() for part in buffer.take(now)]
            ready.append(job)
        has_others = bool(ready)
        if is_last:
            ready += [part for turns in self._runs.values() for buffer in turns.values() for part in buffer.take(now)]
        elif now >= self._next_at + (EVERY if has_others else 0.0):
            ready += self._take_due(now)
        return ready

    def due_in(self, now: float) -> float | None:
        """Return the seconds until `join` is to be called again, although no other event comes; None if nothing is
        buffered, and what comes may be stored at once."""
        if now < self._next_at:
            return self._next_at - now
        sent = [buffer.sent_at for turns in self._runs.values() for buffer in turns.values() if buffer.jobs]
        return max(0.0, min(sent) + PATIENCE - EVERY - now) if sent else None

    def _take_due(self, now: float) -> list[Job]:
        """Return what is due before the next transaction of its kind, and forget the turns that are silent."""
        ready: list[Job] = []
        for run, turns in tuple(self._runs.items()):
            for turn, buffer in tuple(turns.items()):
                if len(ready) < SLICE and buffer.is_due(now + EVERY):
                    ready += buffer.take(now)
                elif not buffer.jobs and now >= buffer.sent_at + PATIENCE:
                    del turns[turn]
            if not turns:
                del self._runs[run]
        if ready:
            self._next_at = now + (EVERY if len(ready) < SLICE else 0.0)
        return ready


def merge_tokens(tokens: Sequence[NewEvent]) -> NewEvent:
    """Join the tokens of one request (§3.1): the body and id of the first, the text of all. The result has no post."""
    pieces = [token.payload.text or "" for token in tokens]
    return _joined_token(tokens[0], pieces, tokens[-1].payload.index)._replace(topic="", merge_group=0)


def _place_of(job: Job) -> tuple[RunKey, int | None] | None:
    """Return the run and the turn of a token that may wait; None for anything else."""
    if (tokens := job.open_tokens) is not None:
        return (tokens.source.conversation, tokens.source.run), tokens.turn
    if len(job.events) == 1 and (event := job.events[0]).kind == "token" and event.run:
        return (event.conversation, event.run), event.turn
    return None


def _pieces_of(job: Job) -> list[str]:
    return [job.events[0].payload.text or ""] if job.open_tokens is None else job.open_tokens.take()


def _index_of(job: Job) -> int:
    return (job.events[0].payload.index or 0) if job.open_tokens is None else job.open_tokens.index


def _size_of(job: Job) -> int:
    return len(job.events[0].payload.text or "") if job.open_tokens is None else job.open_tokens.size


def _joined_token(first: NewEvent, pieces: Sequence[str], last_index: int | None) -> NewEvent:
    if len(pieces) == 1:
        return first
    text = "".join(pieces)
    body = msgspec.json.decode(first.body) | {"text": text, "last_index": last_index}
    return first._replace(
        body=msgspec.json.encode(body).decode(), payload=msgspec.structs.replace(first.payload, text=text)
    )
