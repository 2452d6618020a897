"""Buffer the tokens of our own runs and join them (§3.1); join those of one request."""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from conversations.events.log.records import NewEvent
from conversations.events.log.write_job import FULL, Job

PATIENCE = 0.05  # seconds between two stored parts of a turn


Key = tuple[str | None, str, int | None]  # conversation, run, turn


class TokenBuffer:
    """The buffered tokens of one turn, as the jobs that brought them."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.sent_at = 0.0

    def take(self, now: float) -> list[Job]:
        """Return the buffered tokens as one job, which resolves every caller's future."""
        if not self.jobs:
            return []
        job, last = self.jobs[0], self.jobs[-1]
        parts = [_pieces_of(job) for job in self.jobs]
        if (pieces := [piece for part in parts for piece in part])[1:]:
            last_index = (last.events[0].payload.index or 0) + len(parts[-1]) - 1
            keeps_lengths = job.open_tokens is not None and job.open_tokens.keeps_lengths
            job = job._replace(events=[_joined_token(job.events[0], pieces, last_index, keeps_lengths=keeps_lengths)])
        joined = [waiter.on_done for waiter in self.jobs[1:] if waiter.on_done is not None]
        self.jobs, self.sent_at = [], now
        return [job._replace(joined=joined)]

    def is_due(self, now: float) -> bool:
        """Return whether the buffer is old or large enough to be stored."""
        return bool(self.jobs) and (now >= self.sent_at + PATIENCE or sum(map(_size_of, self.jobs)) >= FULL)


class TokenBuffers:
    """The buffered turns of one of the writer's threads. Used only by that thread."""

    def __init__(self) -> None:
        self._turns: dict[Key, TokenBuffer] = {}

    def join(self, jobs: Sequence[Job], now: float, *, is_last: bool) -> list[Job]:
        """Return the jobs to store now, in order: tokens are joined or buffered; any other event of their run comes
        after them."""
        ready: list[Job] = []
        for job in jobs:
            if _may_wait(job):
                event = job.events[0]
                key = (event.conversation, event.run or "", event.turn)
                self._turns.setdefault(key, TokenBuffer()).jobs.append(job)
                continue
            for run in {(e.conversation, e.run) for e in job.events if e.run}:
                ready += self._take(now, partial(_is_of, run))
            ready.append(job)
        ready += self._take(now, lambda key, buffer: is_last or buffer.is_due(now))
        self._turns = {k: s for k, s in self._turns.items() if s.jobs or now < s.sent_at + PATIENCE}
        return ready

    def due_in(self, now: float) -> float | None:
        """Return the seconds until the next buffer is due; None if none is buffered."""
        waits = [s.sent_at + PATIENCE - now for s in self._turns.values() if s.jobs]
        return max(0.0, min(waits)) if waits else None

    def _take(self, now: float, chosen: Callable[[Key, TokenBuffer], bool]) -> list[Job]:
        return [job for key, buffer in self._turns.items() if chosen(key, buffer) for job in buffer.take(now)]


def merge_tokens(tokens: Sequence[NewEvent]) -> NewEvent:
    """Join the tokens of one request (§3.1): the body and id of the first, the text of all. The result has no post."""
    pieces = [token.payload.text or "" for token in tokens]
    return _joined_token(tokens[0], pieces, tokens[-1].payload.index)._replace(topic="", merge_group=0)


def _is_of(run: tuple[str | None, str | None], key: Key, _: TokenBuffer) -> bool:
    return key[:2] == run


def _may_wait(job: Job) -> bool:
    return len(job.events) == 1 and job.events[0].kind == "token" and bool(job.events[0].run)


def _pieces_of(job: Job) -> list[str]:
    return [job.events[0].payload.text or ""] if job.open_tokens is None else job.open_tokens.take()


def _size_of(job: Job) -> int:
    return len(job.events[0].payload.text or "") if job.open_tokens is None else job.open_tokens.size


def _joined_token(
    first: NewEvent, pieces: Sequence[str], last_index: int | None, *, keeps_lengths: bool = False
) -> NewEvent:
    text = "".join(pieces)
    body = msgspec.json.decode(first.body) | {"text": text, "last_index": last_index}
    body |= {"lengths": [len(piece) for piece in pieces]} if keeps_lengths else {}
    return first._replace(
        body=msgspec.json.encode(body).decode(), payload=msgspec.structs.replace(first.payload, text=text)
    )
