"""A team whose one tool asks a person first and then writes to a file of its own, synced: what it did, whatever the
record says. Its line is `conversation amount`. It pays what the number in the words says, however many runs go on."""

import os
import re
from pathlib import Path
from typing import Any

from agents import Agent, RunContextWrapper, function_tool
from agents.testing import assistant_message, function_call

from agents_app.run_scope import current_scope
from agents_app.teams.definition import NoContext, Team
from conversations.core.failpoints import failpoint
from tests.support.agents_running import Stateless


@function_tool(needs_approval=True)
def pay(ctx: RunContextWrapper[NoContext], amount: int) -> str:
    """Pay, once."""
    scope = current_scope()
    assert scope is not None
    with Path(os.environ["EFFECTS"]).open("a") as file:
        file.write(f"{scope.conversation} {amount}\n")
        file.flush()
        os.fsync(file.fileno())
    failpoint("in-tool")
    return f"paid {amount}"


def _step(done: int, words: str) -> list[Any]:
    if done:
        return [assistant_message("That is settled.")]
    amount = re.search(r"\d+", words)
    return [function_call("pay", {"amount": int(amount[0]) if amount else 1}, call_id="c1")]


TEAM = Team(name="cashier", agents=[Agent(name="Cashier", model=Stateless(_step), tools=[pay])], entry=["Cashier"])
