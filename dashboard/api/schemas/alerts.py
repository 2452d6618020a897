"""The schemas of alert rules, alarms and deliveries, in addition to `core`."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import Paged, Shape

Kind = Literal["approval_waiting", "budget_passed", "run_failed", "run_stuck", "record_gap"]
Form = Literal["post", "slack", "email"]
Grouping = Literal["conversation", "agent", "all"]


class ToSetAlertRule(BaseModel):
    """An alert rule. `after_s` is required for `approval_waiting`, `url` for `post` and `slack`, `recipients` for
    `email`. An empty `agent` means every agent."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    kind: Kind
    form: Form
    url: Annotated[str, Field(max_length=2000, description="empty in a change: as it was")] = ""
    recipients: Annotated[str, Field(max_length=2000, description="e-mail addresses, comma-separated")] = ""
    after_s: Annotated[int, Field(ge=1, le=2_592_000, description="seconds a request may wait")] | None = None
    agent: Annotated[str, Field(max_length=200)] = ""
    grouping: Grouping = "conversation"
    is_enabled: bool = True
    sends_end: bool = False
    reason: Annotated[str, Field(max_length=2000)] = ""


class ToChangeAlertRule(ToSetAlertRule):
    """A changed alert rule. `version` is the version that was read."""

    version: Annotated[int, Field(ge=1, le=2_147_483_647)]


class AlertRule(Shape):
    """An alert rule. Only the scheme and host of its URL are returned."""

    id: int
    name: str
    kind: Kind
    after_s: int | None
    agent: str
    grouping: Grouping
    form: Form
    url: str
    recipients: str
    is_enabled: bool
    sends_end: bool
    version: int
    updated_by: str
    updated_at: str
    shelved_until: str | None
    open_alarms: int
    dead_letters: int


class AlertRules(Paged[AlertRule]):
    """All alert rules, by name."""


class MadeAlertRule(AlertRule):
    """A new alert rule, with the secret that signs its requests; the secret is not returned again."""

    secret: str


class AlertSecret(Shape):
    """The new secret that signs a rule's requests."""

    secret: str


class AlertId(Shape):
    """The id of the alert rule."""

    id: int


class DeliveryId(Shape):
    """The id of the delivery."""

    id: str


class ToShelve(BaseModel):
    """For how long to send nothing: of a rule, or of one of its alarms and similar ones."""

    for_s: Annotated[int, Field(ge=60, le=2_592_000)]
    alarm_id: Annotated[int, Field(ge=1, le=9_223_372_036_854_775_807)] | None = None
    reason: Annotated[str, Field(max_length=500)] = ""


class ToUnshelve(BaseModel):
    """The rule or alarm to unshelve."""

    alarm_id: Annotated[int, Field(ge=1, le=9_223_372_036_854_775_807)] | None = None


class Shelved(Shape):
    """Until when nothing is sent; null: no longer shelved."""

    until: str | None


class Alarm(Shape):
    """One cause in one place, from its first event to its end. `count`: how often it occurred."""

    id: int
    rule_id: int
    rule: str
    kind: Kind
    cause: str
    detail: str
    conversation_id: str | None
    conversation_title: str
    seq: int
    agent: str
    count: int
    opened_at: str
    last_at: str
    closed_at: str | None
    closed_by: str
    notified_at: str | None
    shelved_until: str | None


class Alarms(Paged[Alarm]):
    """Alarms, newest first; `cursor` is the `before` of the next page."""


class AlertDelivery(Shape):
    """A message to one destination."""

    id: str
    rule_id: int
    rule: str
    subject: str
    status: Literal["waiting", "delivered", "failed", "discarded"]
    attempts: int
    http_status: int | None
    error: str
    created_at: str
    done_at: str | None
    due_at: str | None


class AlertDeliveries(Paged[AlertDelivery]):
    """Deliveries; the cursor is always null."""


class AlertFigures(Shape):
    """How many alarms opened in the last hour, day and 7 days, how many are open, and the results of deliveries."""

    last_hour: int
    last_day: int
    last_week: int
    open: int
    delivered_day: int
    waiting: int
    failed: int
