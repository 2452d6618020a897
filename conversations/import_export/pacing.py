"""When to play a step: as recorded, or, in a recording without times, after the time it takes to write.

Default pace, in seconds: text 0.5 + 1 per 40 characters, at most 8; the start of a call 0.5; its end 1.0; else 0.3.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from conversations.core.ids import new_id
from conversations.import_export.recording import Payload, RecordedStep

MIN_TOKEN = 0.02  # seconds between two tokens as played; below it they are joined
MAX_TOKENS = 400  # of one message
AGENT = "agent:"


class TimedStep(NamedTuple):
    """One thing to publish, `wait` seconds of playing time after the one before."""

    wait: float
    step: RecordedStep


def timed_steps(steps: Iterable[RecordedStep], *, speed: float, tokens: bool) -> Iterator[TimedStep]:
    """Yield every step with its time; with `tokens`, an agent's text is preceded by its tokens and an output."""
    before: float | None = None
    for step in steps:
        wait = default_wait(step) if step.offset is None or before is None else max(0.0, step.offset - before)
        if step.offset is not None:
            wait = 0.0 if before is None else wait
            before = step.offset
        if tokens and is_spoken(step):
            yield from as_tokens(step, wait / speed)
        else:
            yield TimedStep(wait / speed, step)


def default_wait(step: RecordedStep) -> float:
    """Return the seconds a step takes in a recording without times."""
    text = step.payload.get("content", step.payload.get("text"))
    if isinstance(text, str):
        return min(8.0, 0.5 + len(text) / 40)
    if step.payload.get("event") == "tool_step":
        return 0.5 if step.payload.get("status") == "start" else 1.0
    return 0.3


def is_spoken(step: RecordedStep) -> bool:
    """Return whether a step is an agent's text, which a model would have streamed."""
    payload = step.payload
    if payload.get("type") != "message" or not str(payload.get("sender", "")).startswith(AGENT):
        return False
    has_output = isinstance(payload.get("metadata"), dict) and "output_id" in payload["metadata"]
    return not has_output and bool(str(payload.get("content") or "").strip())


def as_tokens(step: RecordedStep, wait: float) -> Iterator[TimedStep]:
    """Yield one message as tokens, their output, and the envelope that names it: counters stay the same."""
    text, agent = step.payload["content"], step.payload["sender"].removeprefix(AGENT)
    pieces = split(text, at_most=max(1, min(MAX_TOKENS, int(wait / MIN_TOKEN))))
    each = wait / (len(pieces) + 1)
    for index, piece in enumerate(pieces):
        yield TimedStep(each, _streamed(step, {"event": "token", "text": piece, "index": index, "agent": agent}))
    output = _streamed(step, {"event": "output", "text": text, "agent": agent})
    yield TimedStep(each, output)
    yield TimedStep(0.0, _naming(step, output.payload["id"]))


def split(text: str, *, at_most: int) -> list[str]:
    """Split a text near word boundaries into at most `at_most` pieces of similar size, which together are the text."""
    pieces = re.findall(r"\S+\s*|\s+", text)
    size = max(1, -(-len(pieces) // at_most))
    return ["".join(pieces[at : at + size]) for at in range(0, len(pieces), size)]


def _streamed(step: RecordedStep, payload: dict[str, object]) -> RecordedStep:
    return RecordedStep("stream", {"id": new_id(), **payload}, None, step.place)


def _naming(step: RecordedStep, output_id: str) -> RecordedStep:
    metadata: Payload = {**step.payload.get("metadata", {}), "output_id": output_id}
    return RecordedStep(step.topic, {**step.payload, "metadata": metadata}, None, step.place)
