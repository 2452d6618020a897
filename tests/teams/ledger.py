"""A team whose one tool writes to a file of its own, synced: what it did, whatever the record says."""

import os
from pathlib import Path

from agents import Agent, RunContextWrapper, function_tool
from agents.testing import assistant_message, function_call

from agents_app.run_scope import current_scope
from agents_app.teams.definition import NoContext, Team
from conversations.core.failpoints import failpoint
from tests.support.agents_running import Scripted


@function_tool
def pay(ctx: RunContextWrapper[NoContext]) -> str:
    """Pay, once."""
    scope = current_scope()
    assert scope is not None
    with Path(os.environ["EFFECTS"]).open("a") as file:
        file.write(f"{scope.conversation}\n")
        file.flush()
        os.fsync(file.fileno())
    failpoint("in-tool")
    return "paid"


def _steps() -> list[object]:
    return [[function_call("pay", {}, call_id="c1")], [assistant_message("It is paid.")]]


TEAM = Team(name="ledger", agents=[Agent(name="Clerk", model=Scripted(_steps), tools=[pay])], entry=["Clerk"])
