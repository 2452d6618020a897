"""The events of approvals: asked, decided, over."""

from typing import Any, Literal

from conversations.events.event_type import OURS, PEOPLE, Lane, Row, Search, event_type
from conversations.events.projections.approvals import approval_decided, approval_requested, closed, escalated
from conversations.events.types.base import CallEvent, RunEvent


@event_type(
    Row(view="call_step", words="requested approval for"), fold=approval_requested, authority=OURS, level="steps",
    lane=Lane("requested approval for", "name"), search=Search(label="approval request"),
    traits={"call_step", "opens_call", "holds_run", "remembered"},
)  # fmt: skip
class ApprovalRequested(CallEvent):
    """A tool call waits for a person's decision. `digest` is of the arguments as the model sent them; `decisions` are
    those that whoever asks takes, where not all."""

    event: Literal["approval.requested"] = "approval.requested"
    run_id: str
    approval_id: str
    tool_call: str
    name: str
    digest: str | None = None
    why: str | None = None
    deadline: str | None = None
    on_expiry: Literal["wait", "reject", "notify"] | None = None
    notify: str | None = None
    decisions: list[str] | None = None


@event_type(
    Row(view="call_step", words="decided:"), fold=approval_decided, authority=PEOPLE, author="principal",
    level="steps", lane=Lane("decided", "decision"), search=Search(label="decision"),
    traits={"call_step", "remembered"},
)  # fmt: skip
class ApprovalDecided(RunEvent):
    """The one decision about a call, made by `by`. `edit`: `args_raw` runs, `digest` is its SHA-256. `rule`: an
    auto-approval rule approved it, made by `rule_by`; `makes_rule`: who decided made that rule with it."""

    event: Literal["approval.decided"] = "approval.decided"
    run_id: str
    approval_id: str
    tool_call: str
    decision: Literal["approve", "reject", "respond", "edit"]
    by: str = ""
    message: str | None = None
    reason: str | None = None
    output: str | None = None
    args: dict[str, Any] | None = None
    args_raw: str | None = None
    digest: str | None = None
    rule: str | None = None
    rule_by: str | None = None
    makes_rule: str | None = None


@event_type(
    Row(view="call_step", words="withdrew its approval request"), fold=closed("cancelled"), authority=OURS,
    level="steps", lane=Lane("withdrew an approval request", "reason"), closes_request="withdrawn",
    traits={"call_step"},
)  # fmt: skip
class ApprovalCancelled(RunEvent):
    """An approval request that no longer needs a decision, because its run ended. The principal ended the run, or `by`
    had the system end it."""

    event: Literal["approval.cancelled"] = "approval.cancelled"
    run_id: str
    approval_id: str
    tool_call: str
    reason: str
    by: str = ""


@event_type(
    Row(view="call_step", words="waited past the deadline for a decision"), fold=closed("expired"), authority=OURS,
    level="steps", lane=Lane("waited past the deadline for a decision"), closes_request="expired",
    traits={"call_step"},
)  # fmt: skip
class ApprovalExpired(RunEvent):
    """An approval request whose deadline passed before anybody decided it."""

    event: Literal["approval.expired"] = "approval.expired"
    run_id: str
    approval_id: str
    tool_call: str
    reason: str | None = None


@event_type(
    Row(view="call_step", words="is still waiting for a decision; escalated to"),
    fold=escalated, authority=PEOPLE, level="steps",
    lane=Lane("is still waiting; escalated to", "to"),
)  # fmt: skip
class ApprovalEscalated(RunEvent):
    """An approval request that nobody has decided in time: somebody else is notified. It stays open."""

    event: Literal["approval.escalated"] = "approval.escalated"
    run_id: str
    approval_id: str
    tool_call: str
    to: str
    reason: str | None = None
