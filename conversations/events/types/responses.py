"""What clients of /v1/responses ask for and are answered (§3.6)."""

from typing import Any, Literal

from conversations.events.event_type import OURS, PEOPLE, Lane, Row, event_type
from conversations.events.projections import responses
from conversations.events.types.base import BaseEvent, RunEvent


@event_type(
    Row(view="response_received"), fold=responses.received, level="chat", lane=Lane("requested a response"),
    speaker="client", traits={"speech", "agent_input", "copied", "remembered"},
)  # fmt: skip
class ResponseReceived(BaseEvent):
    """A client asks for a response (Open Responses): its input verbatim, secrets masked. `agent` is to answer it."""

    event: Literal["response.received"] = "response.received"
    response_id: str
    previous_response_id: str | None = None
    sender: str = ""
    recipient: str = ""
    model: str
    agent: str
    input: list[Any]
    instructions: str | None = None
    tools: list[Any] = []
    hosted: list[str] = []
    tool_choice: str | dict[str, Any] = "auto"
    allowed_tools: list[str] | None = None
    params: dict[str, Any] = {}
    conversation: str | None = None
    store: bool = True
    stream: bool = False


@event_type(
    Row(view="response_completed"), fold=responses.completed, authority=OURS, level="steps",
    lane=Lane("completed the response"),
)  # fmt: skip
class ResponseCompleted(RunEvent):
    """What the client is answered, whole, directly before its run's end."""

    event: Literal["response.completed"] = "response.completed"
    run_id: str
    response_id: str
    status: Literal["completed", "failed", "incomplete", "cancelled"]
    output: list[Any] = []
    usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    incomplete_details: dict[str, Any] | None = None
    model: str = ""


@event_type(
    Row(view="response_deleted"), fold=responses.deleted, authority=PEOPLE, level="steps",
    lane=Lane("deleted a response"),
)  # fmt: skip
class ResponseDeleted(BaseEvent):
    """A response is reached by its id no more, and none goes on from it; what was said stays in the record."""

    event: Literal["response.deleted"] = "response.deleted"
    response_id: str
    by: str = ""
