"""The schemas of the event feed, and of requests by external agents."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dashboard.api.schemas.core import Shape


class FeedEvent(Shape):
    """An event of the feed. `id` is its position within the record's epoch."""

    id: int
    conversation_id: str
    seq: int
    kind: str
    at: int
    principal: str
    run_id: str | None
    event_id: str | None
    body: dict[str, Any]


class FeedEvents(Shape):
    """A page of the feed; `cursor` is the position to continue from."""

    items: list[FeedEvent]
    cursor: str


class ToRequestApproval(BaseModel):
    """A call that needs approval, by its provider's id, in a conversation that the same token opened."""

    model_config = ConfigDict(extra="forbid")

    conversation_id: Annotated[str, Field(min_length=1, max_length=200)]
    agent: Annotated[str, Field(min_length=1, max_length=200)]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    tool_call_id: Annotated[str, Field(min_length=1, max_length=200)]
    args_raw: Annotated[str, Field(max_length=256 << 10)] = "{}"
    why: Annotated[str, Field(max_length=2000)] = ""


class RequestedDecision(Shape):
    """The result of the request. `not_asked`: the conversation belongs to another token, or this call was asked about
    with other arguments; `withdrawn`: it can no longer be decided."""

    approval_id: str
    status: Literal["pending", "decided", "withdrawn", "not_asked"]
    decision: str | None = None
    message: str | None = None
    output: str | None = None
    arguments: Any = None


class AguiInput(BaseModel):
    """A `RunAgentInput` of AG-UI 1.0: the thread is the conversation. `resume` answers interrupts."""

    threadId: Annotated[str, Field(min_length=1, max_length=200)]
    runId: Annotated[str, Field(min_length=1, max_length=200)]
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = []
    context: list[dict[str, Any]] = []
    state: Any = None
    forwardedProps: Any = None
    resume: list[dict[str, Any]] = []
