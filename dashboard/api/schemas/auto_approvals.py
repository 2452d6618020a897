"""The schemas of auto-approval rules and of several decisions at once, in addition to `core`."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import DecidedBefore, Paged, Shape


class ToDecideMany(BaseModel):
    """The same decision for several approval requests, each decided separately."""

    decision: Literal["approve", "reject"]
    approvals: Annotated[list[str], Field(min_length=1, max_length=200)]
    message: Annotated[str, Field(max_length=2000)] = ""
    reason: Annotated[str, Field(max_length=2000)] = ""


class DecidedOne(Shape):
    """The result for one request: 200, or the status that it would have had alone, with the error."""

    approval_id: str
    status: int
    error: DecidedBefore | None = None


class DecidedMany(Shape):
    """A result for each request, in order, each once."""

    items: list[DecidedOne]


class ToMakeAutoApprovalRule(BaseModel):
    """An auto-approval rule: matching calls are approved without asking. With `approval_id` that request is approved
    too, and tool, agent and (exact) arguments are those of its call; without it `tool` and `arguments` are required.
    `exact`: the same arguments; `partial`: an object that they contain. An empty `agent` means any."""

    approval_id: Annotated[str, Field(max_length=64)] = ""
    tool: Annotated[str, Field(max_length=410, description="its qualified name or its lookup key")] = ""
    schema_hash: Annotated[str, Field(alias="schema", max_length=64)] = ""
    agent: Annotated[str, Field(max_length=200)] = ""
    any_agent: bool = False
    match: Literal["exact", "partial"] = "exact"
    arguments: dict[str, Any] | None = None
    uses: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    until: datetime | None = None
    reason: Annotated[str, Field(max_length=2000)] = ""


class WithReason(BaseModel):
    """The reason."""

    reason: Annotated[str, Field(max_length=2000)] = ""


class AutoApprovalRule(Shape):
    """A rule by which calls are approved without asking. `idle` is the reason why it approves nothing now, if so."""

    rule_id: str
    tool: str
    lookup_key: str
    schema_hash: Annotated[str, Field(alias="schema")]
    origin: str
    mcp_server: str
    team: str
    agent: str
    match: Literal["exact", "partial"]
    arguments: dict[str, Any]
    uses: int | None
    used: int
    until: str | None
    made_by: str
    made_at: str
    approval_id: str | None
    reason: str
    revoked_by: str | None
    revoked_at: str | None
    idle: str
    url: str


class AutoApprovalRules(Paged[AutoApprovalRule]):
    """Rules, newest first."""


class MadeAutoApprovalRule(AutoApprovalRule):
    """The rule, and the requests that rules have approved since."""

    approved: list[str]
