"""What requests that steer conversations and runs take and answer, as the OpenAPI document says it."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import Seq, Shape, Wrong

Action = Literal["pause", "resume", "take_over", "hand_back", "stop", "abort"]


class ToSteer(BaseModel):
    """What is asked of a conversation. Who hands back what another holds has to give the reason."""

    action: Action
    reason: Annotated[str, Field(max_length=2000)] = ""


class ToSteerMany(ToSteer):
    """The same, asked of several."""

    conversations: Annotated[list[str], Field(min_length=1, max_length=200)]


class Steered(Shape):
    """How the conversation stands: `state` is person, paused or open; `owner` the principal who holds it, or empty."""

    conversation_id: str
    state: str
    paused: bool
    owner: str


class SteeredBefore(Wrong):
    """Somebody was first: `did` says what, `by` who, `at` when; empty where nobody knows."""

    did: str = ""
    by: str = ""
    at: str = ""


class AlreadySteered(Shape):
    """An error that says who did what, when."""

    error: SteeredBefore


class SteeredOne(Shape):
    """What became of one conversation: 200, or the status that it alone would have had, with the error."""

    conversation_id: str
    status: int
    error: SteeredBefore | None = None


class SteeredMany(Shape):
    """An answer for each conversation, in order, each key once."""

    items: list[SteeredOne]


class RunNamed(Shape):
    """A run."""

    run_id: str


class ToRerun(BaseModel):
    """A fork to be made of where a run began. The reason stays in the record."""

    reason: Annotated[str, Field(max_length=2000)] = ""
    client_id: Annotated[str, Field(max_length=100, description="the same id returns the same fork")] = ""


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
