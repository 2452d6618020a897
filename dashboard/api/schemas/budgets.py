"""The schemas of budgets, in addition to `core`."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from dashboard.api.schemas.core import Paged, Shape

Scope = Literal["run", "conversation", "agent"]
Measure = Literal["tokens", "cost", "calls", "minutes"]


class ToSetBudget(BaseModel):
    """How much may be spent before a person is asked; each approval adds the same amount again. The scope `agent`
    counts the last 24 hours. An empty `agent` means every agent."""

    scope: Scope
    measure: Measure
    amount: Annotated[
        str, Field(max_length=20, description="a decimal number such as 12.50 or 1,250; cost in US dollars")
    ]
    agent: Annotated[str, Field(max_length=200)] = ""
    note: Annotated[str, Field(max_length=500)] = ""
    reason: Annotated[str, Field(max_length=2000)] = ""


class Budget(Shape):
    """A budget."""

    id: str
    scope: Scope
    measure: Measure
    amount: str
    agent: str
    note: str
    made_by: str
    made_at: datetime


class Budgets(Paged[Budget]):
    """All budgets."""


class BudgetId(Shape):
    """The id of the removed budget."""

    id: str
