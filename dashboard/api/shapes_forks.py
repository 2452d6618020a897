"""The shapes of what is asked and answered about forks."""

from typing import Annotated

from pydantic import BaseModel, Field

from dashboard.api.shapes import Seq, Shape


class ToRerun(BaseModel):
    """A fork to be made of where a run began. The reason stays in the record."""

    reason: Annotated[str, Field(max_length=2000)] = ""
    client_id: Annotated[str, Field(max_length=100, description="the same again is the same fork")] = ""


class ToFork(ToRerun):
    """A fork to be made after event `at`. With `words` that event, a message, is in them; with `run` an agent goes on:
    `agent`, or whoever would answer."""

    at: Annotated[int, Field(ge=1)]
    words: Annotated[str, Field(min_length=1, max_length=100_000)] | None = None
    run: bool = False
    agent: Annotated[str, Field(max_length=200)] = ""


class ForkMade(Shape):
    """A fork. `seq` is its own first event; what is before are copies. `run_id` is null when nothing was to run."""

    conversation_id: str
    seq: Seq
    run_id: str | None
    url: str
