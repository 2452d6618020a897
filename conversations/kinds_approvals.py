"""The events of approvals: asked, decided, over. Part of `kinds`. No Django."""

from typing import Any, Literal

from conversations.kinds_base import OurEvent


class ApprovalRequested(OurEvent):
    """A tool call waits for a person's decision."""

    event: Literal["approval.requested"]
    run_id: str
    approval_id: str
    tool_call: str
    tool_call_id: str | None = None
    name: str
    args: Any = None
    args_raw: str | None = None
    why: str | None = None
    deadline: str | None = None
    on_expiry: Literal["wait", "reject", "notify"] | None = None
    notify: str | None = None


class ApprovalDecided(OurEvent):
    """The one decision about a call, made by `by`. `edit`: `args_raw` runs, `digest` is its SHA-256. `rule`: an always
    rule approved it, made by `rule_by`; `makes_rule`: who decided made that rule with it."""

    event: Literal["approval.decided"]
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


class ApprovalCancelled(OurEvent):
    """A question that nobody needs to decide any more: its run ended. The principal is who ended it."""

    event: Literal["approval.cancelled"]
    run_id: str
    approval_id: str
    tool_call: str
    reason: str


class ApprovalExpired(OurEvent):
    """A question whose time was up before anybody decided it."""

    event: Literal["approval.expired"]
    run_id: str
    approval_id: str
    tool_call: str
    reason: str | None = None


class ApprovalEscalated(OurEvent):
    """A question that nobody decided for long: somebody else is told of it. It stays open."""

    event: Literal["approval.escalated"]
    run_id: str
    approval_id: str
    tool_call: str
    to: str
    reason: str | None = None
