"""A team whose tools write into a file that they ran, each with another effect, and calls of it to make again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agents import RunContextWrapper, function_tool
from agents.testing import assistant_message, function_call

from agents_app.run_scope import idempotency_key
from agents_app.teams.definition import Team
from conversations.models import Run, ToolCall
from conversations.runs.replay import request_replay
from tests.support.agents_running import ended_runs, event_bodies, send_message, team, working
from tests.support.live import until

EFFECTS = {"look": "read", "put": "idempotent", "send": "unsafe", "burn": "destructive"}
ARGS = {"street": "Elm"}


class Desk:
    """A team of one Clerk. `ran` answers what the tools did, from the file that they append to."""

    def __init__(self, folder: Path) -> None:
        self.ledger = folder / "ran"
        self.ledger.touch()

    @property
    def ran(self) -> list[str]:
        """What ran, one line a call: the tool, its argument, its key."""
        return self.ledger.read_text().splitlines()

    def tools(self, **settings: Any) -> list[Any]:
        """Make the tools anew; `settings` are those of `function_tool` for all of them."""
        return [self.tool(name, **settings) for name in EFFECTS]

    def tool(self, name: str, **settings: Any) -> Any:
        """Make one of them."""

        def ran(ctx: RunContextWrapper[Any], street: str) -> dict[str, Any]:
            with self.ledger.open("a") as ledger:
                ledger.write(f"{name} {street} {idempotency_key(ctx)}\n")
            return {"street": street, "nth": len(self.ran)}

        return _named(ran, name, settings)

    def wider(self, name: str, **settings: Any) -> Any:
        """Make one of them that takes a house too."""

        def ran(ctx: RunContextWrapper[Any], street: str, house: int) -> str:
            with self.ledger.open("a") as ledger:
                ledger.write(f"{name} {street} {house}\n")
            return street

        return _named(ran, name, settings)

    def slow(self, name: str, **settings: Any) -> Any:
        """Make one that does not end by itself."""

        async def ran(ctx: RunContextWrapper[Any], street: str) -> str:
            await asyncio.sleep(60)
            return "late"

        return _named(ran, name, settings)

    def failing(self, name: str, **settings: Any) -> Any:
        """Make one that raises."""

        def ran(ctx: RunContextWrapper[Any], street: str) -> str:
            raise ValueError("no such street")

        return _named(ran, name, settings)

    def team(self, *steps: Any, tools: list[Any] | None = None, **more: Any) -> Team:
        """Make the team as another process would."""
        return team(*steps, tools=self.tools() if tools is None else tools, effects=EFFECTS, **more)

    def recorded(self, *names: str, key: str = "c", **more: Any) -> dict[str, ToolCall]:
        """Have each of these called once; return the calls by name."""
        names = names or tuple(EFFECTS)
        calls = [function_call(name, ARGS, call_id=f"c-{name}") for name in names]
        with working(self.team(calls, [assistant_message("Done.")], **more)):
            send_message(key=key)
            ended_runs(1)
        return {call.name: call for call in ToolCall.objects.filter(conversation__key=key)}

    def again(
        self, by: Any, call: ToolCall, *, made: Team | None = None, **replay_options: Any
    ) -> tuple[Run, ToolCall]:
        """Have a call made again by a worker of its own; return the run, over or waiting, and the new call."""
        with working(made or self.team()):
            new = request_replay.request_replay(by, call.id, **replay_options)
            run = ended(new.run)
        return run, ToolCall.objects.get(id=new.call)


def _named(function: Any, name: str, settings: dict[str, Any]) -> Any:
    return function_tool(function, **{"name_override": name, "description_override": f"Do {name}.", **settings})


def ended(run: str, *, within: float = 20.0) -> Run:
    """Wait for a run's end, or for a question; return it."""

    def ended_run() -> Run | None:
        return Run.objects.filter(id=run).exclude(status__in=("queued", "running")).first()

    return until(
        ended_run, within=within, what=f"run {run} to end: {list(Run.objects.values('id', 'status', 'reason'))}"
    )


__all__ = ["ARGS", "EFFECTS", "Desk", "ended", "ended_runs", "event_bodies", "send_message", "working"]
