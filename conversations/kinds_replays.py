"""How people have recorded calls made again, as events (design 3.1): a part of the union in `kinds`. No Django."""

from typing import Any, Literal

from conversations.kinds_base import OurEvent


class ReplayRequested(OurEvent):
    """A person has a call made again: a new one, `tool_call`, by a run of kind replay, with `args_raw`.

    `replay_of` is the call that was asked to be repeated; `key` the first of that line, under which an idempotent tool
    knows it when the arguments are the recorded ones. `schema` is the tool's of today, which the arguments fit.
    """

    event: Literal["replay.requested"]
    run_id: str
    tool_call: str
    tool_call_id: str
    replay_of: str
    key: str = ""
    name: str
    team: str
    by: str = ""
    reason: str | None = None
    effect: str
    edited: bool = False
    args: dict[str, Any] = {}
    args_raw: str
