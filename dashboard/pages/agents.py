"""The agents page and an agent's own: teams, agents, tools and handoffs, as workers told of them."""

import json

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from conversations import hues, served
from conversations.errors import NotFound
from conversations.fragments import hidden, jsontree, richtext
from conversations.fragments.who import of_name
from conversations.models import Run
from conversations.tools.agents import Described, described
from dashboard.pages import tool_parts
from dashboard.pages.frame import page


@require_safe
def agents(request: HttpRequest) -> HttpResponse:
    """Show them; `?part=state` answers what changes, and the page renews itself by it."""
    hues.refresh()
    is_part = request.GET.get("part") == "state"
    return page(request, "partials/agents_state.html" if is_part else "agents.html", teams=served.teams())


@require_safe
def agent(request: HttpRequest, team: str, name: str) -> HttpResponse:
    """Show one agent of a team: what it answers with, what it is offered, whom it hands over to, its runs."""
    hues.refresh()
    found = None if "\0" in team + name else described(team, name)
    if found is None:
        raise NotFound("No worker here has told of an agent of this name.")
    return page(
        request,
        "agent.html",
        team=team,
        name=name,
        title=hidden.spell(name),
        drawn_team=richtext.inline(team),
        agent=found.served,
        output=_output(found),
        tools=[tool_parts.offer(one) for one in found.tools],
        transfers=[(tool_parts.offer(one), one.text("to"), of_name(one.text("to"))) for one in found.transfers],
        given_by=[(other, of_name(other)) for other in found.given_by],
        problems=[richtext.inline(words) for words in found.problems],
        runs=[_run(run) for run in found.runs],
    )


def _output(found: Described) -> dict[str, object]:
    told = found.output
    text = json.dumps(told.schema, ensure_ascii=False) if told.schema is not None else ""
    return {"is": told, "type": richtext.inline(told.type[:200]), "tree": jsontree.draw(text) if text else None}


def _run(run: Run) -> dict[str, object]:
    title = run.conversation.title or run.conversation.key
    return {
        "is": run,
        "conversation": richtext.inline(title[:120]),
        "reason": richtext.inline(run.reason),
        "seq": run.ended_seq or run.queued_seq,
    }
