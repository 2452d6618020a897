"""A team whose tool never returns."""

import threading

from agents import Agent, function_tool
from agents.testing import ScriptedModel, function_call

from agents_app.teams.definition import Team


@function_tool
def hang() -> None:
    """Hang."""
    threading.Event().wait()


_CLERK = Agent(name="Clerk", model=ScriptedModel([[function_call("hang", {}, call_id="h")]]), tools=[hang])
TEAM = Team(name="hanging", agents=[_CLERK], entry=["Clerk"])
