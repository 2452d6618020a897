"""The schemas of control actions on conversations and runs, for the OpenAPI document."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import ErrorDetail, RowNumber, Seq, Shape

Action = Literal["pause", "resume", "take_over", "hand_back", "stop", "abort"]


class ToControl(BaseModel):
    """A control action on a conversation. To hand back what another person took over, a reason is required."""

    action: Action
    reason: Annotated[str, Field(max_length=2000)] = ""


class ToControlMany(ToControl):
    """The same action on several conversations."""

    conversations: Annotated[list[str], Field(min_length=1, max_length=200)]


class ControlState(Shape):
    """The state of the conversation: `state` is person, paused or open; `owner` the principal who took it over, or
    empty."""

    conversation_id: str
    state: str
    paused: bool
    owner: str


class ControlConflictDetail(ErrorDetail):
    """Somebody else acted first: `did` is the action, `by` who, `at` when; empty if unknown."""

    did: str = ""
    by: str = ""
    at: str = ""


class ControlConflict(Shape):
    """An error that states who did what, and when."""

    error: ControlConflictDetail


class ControlResult(Shape):
    """The result for one conversation: 200, or the status that it would have had alone, with the error."""

    conversation_id: str
    status: int
    error: ControlConflictDetail | None = None


class ControlResults(Shape):
    """A result for each conversation, in order, each key once."""

    items: list[ControlResult]


class RunNamed(Shape):
    """A run."""

    run_id: str


class ToRerun(BaseModel):
    """A fork at the start of a run. The reason is kept in the record."""

    reason: Annotated[str, Field(max_length=2000)] = ""
    client_id: Annotated[str, Field(max_length=100, description="the same id returns the same fork")] = ""


class ToFork(ToRerun):
    """A fork after event `at`. With `words`, that event, which must be a message, is replaced by this text; with `run`
    an agent continues: `agent`, or the one that would answer."""

    at: RowNumber
    words: Annotated[str, Field(min_length=1, max_length=100_000)] | None = None
    run: bool = False
    agent: Annotated[str, Field(max_length=200)] = ""


class ForkMade(Shape):
    """A fork. `seq` is its own first event; those before it are copies. `run_id` is null if no run was started."""

    conversation_id: str
    seq: Seq
    run_id: str | None
    url: str
