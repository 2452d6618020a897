"""The shapes of one tool call and of its replays (§3.6): a part of `core`, for the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from conversations.runs.policy.evaluate import Effect, Rule
from dashboard.api.schemas.core import Shape
from dashboard.api.schemas.tool_calls import CallTold


class CallDecision(Shape):
    """What was asked and decided about a call; nobody decided while `decision` is null."""

    approval_id: str
    status: str
    decision: str | None
    by: str | None


class CallReplay(Shape):
    """A call that somebody had made again from this one."""

    id: str
    run_id: str | None
    status: str


class RecordedCall(CallTold):
    """A tool call as the record has it. Without a run it was only observed. `ran_with` are the `arguments`, unless a
    person changed them before it ran (`changed_by`)."""

    nth: int
    ran_with: Any
    changed_by: str | None
    args_raw: str | None
    parent_call: str | None
    approval: CallDecision | None
    replays: list[CallReplay]


class CallToday(Shape):
    """What a call's tool is now: whether it can be made again, why not, and what that `takes`."""

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
    """A tool call, and what its tool is today."""

    today: CallToday


class ToReplay(BaseModel):
    """What is asked of a replay. `dry` starts nothing. `tool` is the tool's name typed, where that is needed."""

    dry: bool = True
    arguments: dict[str, Any] | str | None = None
    reason: Annotated[str, Field(max_length=2000)] = ""
    tool: Annotated[str, Field(max_length=401)] = ""
    client_id: Annotated[str, Field(max_length=100, description="the same id returns the same replay")] = ""


class ReplayRequest(Shape):
    """What would be asked of the worker. `key`: an idempotent tool knows the call by it; empty: by the new call's."""

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
    """A replay that was not begun, with the recording beside it."""

    request: ReplayRequest
    recorded: RecordedCall
    today: CallToday


class ReplayBegun(Shape):
    """A replay that was begun: its run, and the new call."""

    run_id: str
    tool_call: str
    url: str
