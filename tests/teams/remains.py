"""A team that writes to the file `REMAINS` what its process still does at its end."""

import atexit
import os
from collections.abc import Callable

from agents import Agent
from agents.testing import ScriptedModel

from agents_app.teams.definition import Team

DESCRIPTOR = os.open(os.environ["REMAINS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


class Garbage:
    """Says when it is collected."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self, write: Callable[[int, bytes], int] = os.write, to: int = DESCRIPTOR) -> None:
        """Say so; the arguments are there when the module is gone."""
        write(to, b"collected\n")


GARBAGE = Garbage()
atexit.register(os.write, DESCRIPTOR, b"ended\n")
TEAM = Team(name="remains", agents=[Agent(name="Clerk", model=ScriptedModel([]))], entry=["Clerk"])
