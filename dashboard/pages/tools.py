"""A tool's page: what a model sees of it beside what is injected, its rules, users, versions and calls. Rows only."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from conversations import hues
from conversations.errors import NotFound
from conversations.fragments import hidden, richtext
from conversations.tools import figures, offers, versions
from dashboard.pages import tool_parts
from dashboard.pages.frame import page


@require_safe
def tool(request: HttpRequest, team: str, name: str) -> HttpResponse:
    """Show a tool of a team (qualified name), with `?version=` at that schema, and with `?against=` beside another."""
    hues.refresh()
    every, offered = _known(team, name)
    shown = _shown(request.GET.get("version", ""), every, offered)
    body, against = versions.body_of(shown), _against(request.GET.get("against", ""), shown, every)
    how = figures.figures_of([one.hash for one in every], offers.elsewhere(team))
    return page(
        request,
        "tool.html",
        **_head(team, name),
        offers=[tool_parts.offer(one) for one in offered],
        others=[(other, richtext.inline(other)) for other in offers.also_called(team, name)],
        versions=every,
        current={one.schema for one in offered},
        shown=shown,
        seen=tool_parts.seen(versions.seen(body)) if body else None,
        diff=tool_parts.compared(against, body) if against is not None else None,
        figures=how,
        window=figures.WINDOW,
        calls=[tool_parts.call(one) for one in how.newest],
    )


@require_safe
def schema(request: HttpRequest, hash: str) -> HttpResponse:
    """Lead to the tool that was offered under a schema, at that version; `?agent=` says whose it was."""
    home = versions.home_of(hash[:64], request.GET.get("agent", "")[:200].replace("\0", "")) if hash.isalnum() else None
    if home is None:
        raise NotFound("No team here has offered a tool under this schema: the call may be from another record.")
    return HttpResponseRedirect(f"{reverse('tool', args=home)}?{urlencode({'version': hash})}")


def _known(team: str, name: str) -> tuple[list[versions.Version], list[offers.Offer]]:
    known = ([], []) if "\0" in team + name else (versions.versions_of(team, name), offers.offers_of(team, name))
    if not any(known):
        raise NotFound("No team here has offered a tool of this name.")
    return known


def _head(team: str, name: str) -> dict[str, Any]:
    return {
        "team": team,
        "name": name,
        "title": hidden.spell(name),
        "drawn_name": richtext.inline(name),
        "drawn_team": richtext.inline(team),
    }


def _shown(wanted: str, every: list[versions.Version], offered: list[offers.Offer]) -> str:
    """Answer the hash of the version to show: the one asked for, else what is offered now, else the newest."""
    known = [one.hash for one in every]
    if wanted in known:
        return wanted
    return next((offer.schema for offer in offered if offer.schema), known[0] if known else "")


def _against(wanted: str, shown: str, every: list[versions.Version]) -> versions.Version | None:
    """Answer the version to compare with: the one asked for, else the one before the shown."""
    asked = next((one for one in every if one.hash == wanted != shown), None)
    place = next((n for n, one in enumerate(every) if one.hash == shown), len(every))
    return asked or next(iter(every[place + 1 :]), None)
