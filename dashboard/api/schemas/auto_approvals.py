"""The shapes of auto-approval rules and of several decisions at once, beside `core`."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import DecidedBefore, Paged, Shape


class ToDecideMany(BaseModel):
    """The same decision about several questions, each made by itself."""

    decision: Literal["approve", "reject"]
    approvals: Annotated[list[str], Field(min_length=1, max_length=200)]
    message: Annotated[str, Field(max_length=2000)] = ""
    reason: Annotated[str, Field(max_length=2000)] = ""


class DecidedOne(Shape):
    """What became of one question: 200, or the status that it alone would have had, with the error."""

    approval_id: str
    status: int
    error: DecidedBefore | None = None


class DecidedMany(Shape):
    """An answer for each question, in order, each once."""

    items: list[DecidedOne]


class ToMakeAutoApprovalRule(BaseModel):
    """A rule for auto-approval: calls that fit it are approved without asking. With `approval_id` that question is
    approved, and tool, agent and (exact) arguments are its call's; without it `tool` and `arguments` have to be given.
    `exact`: the same arguments; `partial`: an object that they contain. An empty `agent` is any."""

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
    """Why it is done."""

    reason: Annotated[str, Field(max_length=2000)] = ""


class AutoApprovalRule(Shape):
    """A rule by which calls are approved without asking. `idle` says why it approves nothing now, if so."""

    rule_id: str
    tool: str
    lookup_key: str
    schema_hash: Annotated[str, Field(alias="schema")]
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
    """The rule, and the questions that rules have answered since."""

    approved: list[str]
