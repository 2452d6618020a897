"""The steps of tool calls: made, ended, refused, made again."""

from typing import Any, Literal

from conversations.events.event_type import OURS, PEOPLE, Lane, Row, Search, event_type
from conversations.events.projections import runs, tool_calls
from conversations.events.types.base import CallEvent


@event_type(
    Row(template="tool_step"), fold=tool_calls.tool_step, level="steps",
    search=Search(label="tool call", filter="Tool calls"),
    traits={"call_step", "opens_call", "tools_may_publish", "remembered", "unsigned", "leaves_state"},
)  # fmt: skip
class ToolStep(CallEvent):
    """A tool called, or its result. `edited_by` changed its arguments; `answered_by` gave the output in its place."""

    event: Literal["tool_step"] = "tool_step"
    name: str
    status: Literal["start", "success", "error", "timeout"] | None = None
    output: Any = None
    output_bytes: int | None = None
    result_summary: str | None = None
    error: str | None = None
    duration_ms: float | None = None
    edited_by: str | None = None
    answered_by: str | None = None
    response_id: str | None = None


@event_type(
    Row(view="call_step", words="was denied by policy"), fold=runs.refused, authority=OURS, level="steps",
    lane=Lane("was denied by policy", "reason"), traits={"call_step", "outlined"},
)  # fmt: skip
class PolicyRefused(CallEvent):
    """A call that was refused without a person's decision: by an operator's `rule`, by the request's choice of tools,
    or because there is no such tool, or it is not enabled."""

    event: Literal["policy.refused"] = "policy.refused"
    run_id: str
    tool_call: str
    name: str
    reason: str
    rule: dict[str, Any] | None = None


@event_type(
    Row(view="call_step", words="asked for a call once more"), fold=tool_calls.replay_requested, authority=PEOPLE,
    author="principal", level="steps", lane=Lane("asked for a call once more", "name"), search=Search(label="replay"),
    traits={"call_step"},
)  # fmt: skip
class ReplayRequested(CallEvent):
    """A person has a call made again: a new one, `tool_call`, by a run of kind replay, with `args_raw`.

    `replay_of` is the call that was asked to be repeated; `key` the first of that line, under which an idempotent tool
    knows it when the arguments are the recorded ones. `schema` is the tool's of today, which the arguments fit.
    """

    event: Literal["replay.requested"] = "replay.requested"
    run_id: str
    tool_call: str
    tool_call_id: str
    replay_of: str
    key: str = ""
    name: str
    team: str
    effect: str
    edited: bool = False
    args_raw: str
    digest: str | None = None
