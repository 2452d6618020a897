"""A tool's page: what the model sees, what is injected, its rules, agents, versions and calls. Read-only."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from conversations.core import hidden_characters
from conversations.core.errors import NotFound
from conversations.rendering import agent_colors, richtext
from conversations.tool_calls.schemas import call_statistics, tool_offers, versions
from dashboard.pages import tool_sections
from dashboard.pages.base_context import render_page


@require_safe
def tool(request: HttpRequest, team: str, name: str) -> HttpResponse:
    """Show a tool of a team (by qualified name), with `?version=` at that schema, and with `?against=` compared with
    another."""
    agent_colors.refresh_colors()
    every, offered = _versions_and_offers(team, name)
    shown = _shown(request.GET.get("version", ""), every, offered)
    body, against = versions.body_of(shown), _against(request.GET.get("against", ""), shown, every)
    how = call_statistics.figures_of([item.hash for item in every], tool_offers.agents_of_other_teams(team))
    return render_page(
        request,
        "tool.html",
        **_head(team, name),
        offers=[tool_sections.offer(item) for item in offered],
        others=[(other, richtext.inline(other)) for other in tool_offers.also_called(team, name)],
        versions=every,
        current={item.schema for item in offered},
        shown=shown,
        seen=tool_sections.draw_schema(versions.read_schema(body)) if body else None,
        diff=tool_sections.compared(against, body) if against is not None else None,
        figures=how,
        window=call_statistics.WINDOW,
        calls=[tool_sections.call(item) for item in how.newest],
    )


@require_safe
def schema(request: HttpRequest, hash: str) -> HttpResponse:
    """Redirect to the tool that had a schema, at that version; `?agent=` names the agent."""
    home = versions.home_of(hash[:64], request.GET.get("agent", "")[:200].replace("\0", "")) if hash.isalnum() else None
    if home is None:
        raise NotFound("No team here has offered a tool with this schema. The call may come from another record.")
    return HttpResponseRedirect(reverse("tool", args=home, query={"version": hash}))


def _versions_and_offers(team: str, name: str) -> tuple[list[versions.Version], list[tool_offers.ToolOffer]]:
    result = ([], []) if "\0" in team + name else (versions.versions_of(team, name), tool_offers.offers_of(team, name))
    if not any(result):
        raise NotFound("No team here has offered a tool with this name.")
    return result


def _head(team: str, name: str) -> dict[str, Any]:
    return {
        "team": team,
        "name": name,
        "title": hidden_characters.spelled_out(name),
        "drawn_name": richtext.inline(name),
        "drawn_team": richtext.inline(team),
    }


def _shown(requested: str, every: list[versions.Version], offered: list[tool_offers.ToolOffer]) -> str:
    """Return the hash of the version to show: the one asked for, else the one offered now, else the newest."""
    hashes = [version.hash for version in every]
    if requested in hashes:
        return requested
    return next((offer.schema for offer in offered if offer.schema), hashes[0] if hashes else "")


def _against(requested: str, shown: str, every: list[versions.Version]) -> versions.Version | None:
    """Return the version to compare with: the one asked for, else the one before the version shown."""
    chosen = next((version for version in every if version.hash == requested != shown), None)
    index = next((n for n, version in enumerate(every) if version.hash == shown), len(every))
    return chosen or next(iter(every[index + 1 :]), None)
