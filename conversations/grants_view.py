"""Grants as the People page lists them, and what it proposes for a new one."""

from typing import NamedTuple

from conversations import policy_view
from conversations.fragments import hidden
from conversations.grants import ALL, KINDS
from conversations.models import Agent, Grant

MOST = 200  # names of agents, and of tools, that are proposed


class Row(NamedTuple):
    """A grant: `target` and `given_by` fit to be shown, `grant` as it is stored."""

    person: str
    words: str
    target: str
    given_by: str
    is_over: bool
    grant: Grant


def listed() -> list[Row]:
    """Answer all grants, those whose time is up among them, by person."""
    found = Grant.objects.select_related("user").order_by("user__username", "what", "target")
    return [
        Row(one.user.username, KINDS[one.what].words, _named(one), hidden.spell(one.granted_by), one.is_over(), one)
        for one in found
    ]


def proposed() -> list[str]:
    """Answer what a grant may be about: all, the system, agents and tools that are served."""
    names = Agent.objects.order_by("name").values_list("name", flat=True).distinct()[:MOST]
    tools = sorted({tool for _, tool in policy_view.codes_of_served() if tool})[:MOST]
    return [ALL, "system", *(f"agent:{name}" for name in names), *tools]


def _named(one: Grant) -> str:
    return "all" if one.target == ALL else hidden.spell(one.target)
