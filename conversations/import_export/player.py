"""Play recordings: each conversation's events in order, several conversations side by side, on one thread."""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from conversations.core.ids import new_id
from conversations.import_export.pacing import TimedStep, timed_steps
from conversations.import_export.recording import Recording, addressed, with_opening

Publish = Callable[[str, dict[str, Any], str], None]  # topic, payload, bus id; returns when it is stored


class PlayerClock:
    """A source of time; tests pass their own."""

    def now(self) -> float:
        """Return the seconds since some moment."""
        return time.monotonic()

    def wait_until(self, moment: float) -> None:
        """Sleep until that moment."""
        time.sleep(max(0.0, moment - self.now()))


class PlayedConversation(NamedTuple):
    """One conversation to play: its key, and the remaining steps."""

    key: str
    beats: Iterator[TimedStep]


class _Due(NamedTuple):
    at: float
    number: int  # of the part, so that what is due together keeps its order
    beat: TimedStep


def part_of(recording: Recording, key: str, *, speed: float, tokens: bool) -> PlayedConversation:
    """Prepare one recording for `play`."""
    return PlayedConversation(key, timed_steps(with_opening(recording), speed=speed, tokens=tokens))


def play(
    parts: Iterable[PlayedConversation],
    publish: Publish,
    *,
    clock: PlayerClock | None = None,
    progress: Callable[[int, int], None] = lambda done, playing: None,
) -> int:
    """Publish all parts, each at its own pace from now; return the number of events.

    The next event of a part is published after the previous one was acknowledged. If publishing is slower than the
    pace, everything comes later and nothing is left out.
    """
    clock = clock or PlayerClock()
    playing = list(parts)
    start = clock.now()
    due = [_Due(start + beat.wait, n, beat) for n, part in enumerate(playing) if (beat := next(part.beats, None))]
    heapq.heapify(due)
    count = 0
    while due:
        at, number, beat = due[0]
        clock.wait_until(at)
        part = playing[number]
        publish(f"{beat.step.topic}:{part.key}", _now_in(part.key, beat), new_id())
        count += 1
        following = next(part.beats, None)
        if following is None:
            heapq.heappop(due)
        else:
            heapq.heapreplace(due, _Due(at + following.wait, number, following))
        progress(count, len(due))
    return count


def _now_in(key: str, beat: TimedStep) -> dict[str, Any]:
    return {**addressed(beat.step, key), "created_at": datetime.now(UTC).isoformat()}
