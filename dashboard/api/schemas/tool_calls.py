"""The shapes of tool calls and saved views in the API, for the OpenAPI document and the tests that hold to it."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import Paged, Seq, Shape


class CallTold(Shape):
    """What is told of a tool call wherever one is. `arguments` are the text that was sent where that is no JSON."""

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
    duration_ms: float | None
    replay_of: str | None
    called_seq: Seq
    finished_seq: Seq | None
    url: str


class ToolCall(CallTold):
    """A tool call of a list. `approver` is who decided about it."""

    output_bytes: int | None
    approver: str | None


class ToolCalls(Paged[ToolCall]):
    """Tool calls, newest first. `looked_at`: how many were walked past before the walk ended short of the limit."""

    looked_at: int | None


class ToSaveView(BaseModel):
    """A query of the tool-calls page, and what to call it."""

    name: Annotated[str, Field(max_length=80)]
    query: Annotated[str, Field(max_length=4000)]


class ToName(BaseModel):
    """Another name."""

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
