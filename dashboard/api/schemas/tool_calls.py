"""The schemas of tool calls and saved views, for the OpenAPI document and the tests that check it."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import Paged, Seq, Shape


class ToolCallBase(Shape):
    """The fields that every representation of a tool call has. `arguments` are the original text if that is not
    JSON."""

    id: str
    conversation_id: str
    run_id: str | None
    call_id: str | None
    agent: str
    name: str
    namespace: str | None
    qualified_name: str
    lookup_key: str | None
    origin: str | None
    mcp_server: str | None
    schema_hash: Annotated[str | None, Field(alias="schema")]
    arguments: Any
    output: Any
    error: Any
    status: str
    started_at: str
    imported_at: Annotated[
        str | None,
        Field(description="when an imported call was recorded; `started_at` is then its original time, if known"),
    ]
    duration_ms: float | None
    replay_of: str | None
    called_seq: Seq
    finished_seq: Seq | None
    url: str


class ToolCall(ToolCallBase):
    """A tool call in a list. `approver` is the principal who decided about it; `ran_with` are the arguments after their
    `decision`, those that were sent if they changed none."""

    output_bytes: int | None
    approver: str | None
    decision: str | None
    ran_with: Any


class ToolCalls(Paged[ToolCall]):
    """Tool calls, newest first. `looked_at`: how many calls were searched if the search stopped before the limit was
    reached."""

    looked_at: int | None
    lag: Annotated[int, Field(description="recorded events whose words are not searchable yet; 0 without `q`")]


class ToSaveView(BaseModel):
    """A query of the tool-calls page, and a name for it."""

    name: Annotated[str, Field(max_length=80)]
    query: Annotated[str, Field(max_length=4000)]


class ToName(BaseModel):
    """The new name."""

    name: Annotated[str, Field(max_length=80)]


class SavedView(Shape):
    """A saved view: open `/calls/?` and its query."""

    id: int
    name: str
    query: str
    made_by: str
    made_at: str


class SavedViews(Shape):
    """Saved views, by name."""

    items: list[SavedView]


class Removed(Shape):
    """What was removed."""

    id: int
