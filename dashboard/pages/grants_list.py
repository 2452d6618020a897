"""Grants as the People page lists them, and the targets it proposes for a new one."""

from typing import NamedTuple

from conversations.access.grants import ALL, KINDS
from conversations.core import hidden_characters
from conversations.models import Agent, Grant
from conversations.runs.policy import view

MAX_NAMES = 200  # names of agents, and of tools, that are proposed


class GrantRow(NamedTuple):
    """A grant: `target` and `given_by` escaped for display, `grant` as stored."""

    person: str
    words: str
    target: str
    given_by: str
    is_over: bool
    grant: Grant


def listed() -> list[GrantRow]:
    """Return all grants by person, including expired ones."""
    rows = Grant.objects.select_related("user").order_by("user__username", "what", "target")
    return [
        GrantRow(
            grant.user.username,
            KINDS[grant.what].words,
            _named(grant),
            hidden_characters.spelled_out(grant.granted_by.removeprefix("user:")),
            grant.is_over(),
            grant,
        )
        for grant in rows
    ]


def proposed() -> list[str]:
    """Return possible targets of a grant: everything, the system, and available agents and tools."""
    names = Agent.objects.order_by("name").values_list("name", flat=True).distinct()[:MAX_NAMES]
    tools = sorted({tool for _, tool in view.codes_of_served() if tool})[:MAX_NAMES]
    return [ALL, "system", *(f"agent:{name}" for name in names), *tools]


def _named(grant: Grant) -> str:
    return "all" if grant.target == ALL else hidden_characters.spelled_out(grant.target)
