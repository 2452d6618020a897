"""A team that writes down what its model is given of people's words, to a file, and whose tool waits for a test."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from agents import Agent, RunContextWrapper, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from agents_app.teams.definition import NoContext, Team
from conversations.core.failpoints import failpoint


def write(line: str) -> None:
    """Write a line down for the test."""
    with Path(os.environ["GIVEN"]).open("a") as file:
        file.write(f"{line}\n")


@function_tool
async def work(ctx: RunContextWrapper[NoContext]) -> str:
    """Work until the test lets it end."""
    write("in the tool")
    while not Path(os.environ["GIVEN"]).with_name("may-end").exists():  # noqa: ASYNC110  # let go by another process
        await asyncio.sleep(0.02)
    return "worked"


class Steered(ScriptedModel):
    """Calls its tool for the first words, then answers; dies where the test wishes, once it was steered."""

    async def stream_response(
        self, system_instructions: Any, input: Any, *more: Any, **named: Any
    ) -> AsyncIterator[Any]:
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        words = [str(item["content"]) for item in items if item.get("role") == "user"]
        is_first = words == ["pay"] and not any(item.get("type") == "function_call_output" for item in items)
        if not is_first:
            write(" | ".join(words))
            failpoint("after-step")
        step = [function_call("work", {}, call_id="c1")] if is_first else [assistant_message("Done.")]
        async for event in ScriptedModel([step]).stream_response(system_instructions, input, *more, **named):
            yield event


TEAM = Team(name="steered", agents=[Agent(name="Clerk", model=Steered(), tools=[work])], entry=["Clerk"])
