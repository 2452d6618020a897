"""Teams with scripted models for tests of the worker, and a worker in a thread of the test's own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agents import Agent, Model
from agents.testing import ScriptedModel

from agents_app.model_providers.providers import ModelConfig
from agents_app.teams.definition import Team
from agents_app.worker.worker import Worker
from conversations.core import principals
from conversations.events import log
from conversations.models import Event, Run
from tests.support.live import until
from tests.support.unchecked import unchecked

ROBOT = principals.token_principal("robot")
MODEL = ModelConfig(demo_pace_s=0)


class Scripted(Model):
    """A scripted model of its own for each conversation: `steps` makes its script from the words to answer."""

    def __init__(self, steps: Callable[[], Sequence[Any]]) -> None:
        self.steps = steps
        self.scripts: dict[str, ScriptedModel] = {}

    def _of(self, given: Any) -> ScriptedModel:
        words = given if isinstance(given, str) else str(given[0].get("content"))
        return self.scripts.setdefault(words, ScriptedModel(self.steps()))

    async def get_response(self, system_instructions: Any, input: Any, *more: Any, **named: Any) -> Any:
        return await self._of(input).get_response(system_instructions, input, *more, **named)

    async def stream_response(self, system_instructions: Any, input: Any, *more: Any, **named: Any) -> Any:
        async for event in self._of(input).stream_response(system_instructions, input, *more, **named):
            yield event


class Stateless(Model):
    """A scripted model that reads from what it is told which step is next, so that any process can go on with a run.

    `step(done, words)` makes the step that comes after so many answered calls; `words` are those that it answers.
    """

    def __init__(self, step: Callable[[int, str], Any]) -> None:
        self.step = step

    def _next(self, given: Any) -> ScriptedModel:
        items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
        last = max(n for n, item in enumerate(items) if item.get("role") == "user")
        done = sum(item.get("type") == "function_call_output" for item in items[last:])
        return ScriptedModel([self.step(done, str(items[last]["content"]))])

    async def get_response(self, system_instructions: Any, input: Any, *more: Any, **named: Any) -> Any:
        return await self._next(input).get_response(system_instructions, input, *more, **named)

    async def stream_response(self, system_instructions: Any, input: Any, *more: Any, **named: Any) -> Any:
        async for event in self._next(input).stream_response(system_instructions, input, *more, **named):
            yield event


def team(*steps: Any, tools: Sequence[Any] = (), name: str = "test", **more: Any) -> Team:
    """Make a team of one agent, Clerk, with a script."""
    clerk = Agent[Any](name="Clerk", model=ScriptedModel(steps), tools=list(tools))
    return Team(name=name, agents=[clerk], entry=["Clerk"], **more)


@contextmanager
def working(*teams: Team, config: ModelConfig = MODEL, **more: Any) -> Iterator[Worker]:
    """Run a worker over these teams; at the end it has stopped in order."""
    writer = log.WriterThreads()
    writer.start()
    worker = Worker(writer, teams, config=config, **more)
    trouble: list[BaseException] = []

    def serve() -> None:
        try:
            asyncio.run(worker.run())
        except BaseException as error:
            trouble.append(error)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        until(lambda: trouble or worker.is_serving, what="the worker to serve")
        yield worker
    finally:
        worker.stop()
        thread.join(60)
        writer.close()
        assert not thread.is_alive(), "the worker did not stop"
        assert not trouble, trouble


def send_message(
    words: str = "hello", key: str = "c", to: str = "agent:Clerk", sender: str = "Rosa", **more: Any
) -> None:
    """Send a message to an agent, as an external client would."""
    payload = {"type": "message", "sender": sender, "recipient": to, "content": words, **more}
    log.append([unchecked(key, payload, ROBOT, topic=f"chat:{key}")])


def ended_runs(count: int = 1, *, within: float = 60.0) -> list[Run]:
    """Wait until so many runs are no longer queued or running; return them in order."""

    def ended() -> list[Run]:
        runs = Run.objects.exclude(status__in=("queued", "running")).order_by("queued_seq", "id")
        return list(runs) if runs.count() >= count else []

    return until(ended, within=within, what=f"{count} runs to end: {list(Run.objects.values('status', 'reason'))}")


def event_bodies(kind: str = "", key: str = "c") -> list[dict[str, Any]]:
    """Return the bodies of a conversation's events, of a kind or all but tokens."""
    events = Event.objects.filter(conversation__key=key).order_by("seq")
    events = events.filter(kind=kind) if kind else events.exclude(kind="token")
    return [json.loads(body) for body in events.values_list("body", flat=True)]


def event_kinds(key: str = "c") -> list[str]:
    """Return the kinds of a conversation's events, tokens left out."""
    events = Event.objects.filter(conversation__key=key).exclude(kind="token").order_by("seq")
    return list(events.values_list("kind", flat=True))
