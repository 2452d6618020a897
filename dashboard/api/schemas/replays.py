"""The schemas of a tool call and its replays (§3.6): a part of `core`, for the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from conversations.runs.policy.evaluate import Effect, Rule
from dashboard.api.schemas.core import Shape
from dashboard.api.schemas.tool_calls import ToolCallBase


class CallDecision(Shape):
    """The approval request and decision of a call; not decided while `decision` is null."""

    approval_id: str
    status: str
    decision: str | None
    by: str | None


class CallReplay(Shape):
    """A replay of this call."""

    id: str
    run_id: str | None
    status: str


class RecordedCall(ToolCallBase):
    """A tool call as recorded. Without a run it was only observed. `ran_with` are the `arguments`, unless a person
    changed them before it ran (`changed_by`); null if those are redacted."""

    nth: int
    ran_with: Any
    changed_by: str | None
    args_raw: str | None
    parent_call: str | None
    approval: CallDecision | None
    replays: list[CallReplay]


class CallToday(Shape):
    """A call's current tool: whether the call can be replayed, why not, and what a replay requires (`takes`)."""

    can_replay: bool
    why_not: str
    team: str
    schema_hash: Annotated[str | None, Field(alias="schema")]
    is_changed: bool
    effect: Effect
    rule: Rule
    takes: list[Literal["grant", "reason", "tool"]]
    second_person: bool
    notes: list[str]


class OneCall(RecordedCall):
    """A tool call, and the current state of its tool."""

    today: CallToday


class ToReplay(BaseModel):
    """A request for a replay. `dry` starts nothing. `tool` is the tool's name as typed, if that is required."""

    dry: bool = True
    arguments: dict[str, Any] | str | None = None
    reason: Annotated[str, Field(max_length=2000)] = ""
    tool: Annotated[str, Field(max_length=401)] = ""
    client_id: Annotated[str, Field(max_length=100, description="the same id returns the same replay")] = ""


class ReplayRequest(Shape):
    """What the worker would be asked to run. `key`: by which an idempotent tool recognizes the call; empty: the new
    call's own."""

    tool: str
    lookup_key: str
    agent: str
    team: str
    schema_hash: Annotated[str, Field(alias="schema")]
    arguments: dict[str, Any]
    args_raw: str
    key: str
    edited: bool


class DryReplay(Shape):
    """A replay that was not started, with the recording for comparison."""

    request: ReplayRequest
    recorded: RecordedCall
    today: CallToday


class ReplayBegun(Shape):
    """A replay that was started: its run, and the new call."""

    run_id: str
    tool_call: str
    url: str
