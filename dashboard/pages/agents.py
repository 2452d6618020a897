"""The agents page and the page of one agent: teams, agents, tools and handoffs as workers reported them."""

import json

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from conversations.conversation import spending
from conversations.core import hidden_characters
from conversations.core.errors import NotFound
from conversations.models import Run
from conversations.rendering import agent_colors, json_tree, richtext
from conversations.rendering.participant_marks import mark_for_name
from conversations.tool_calls import agent_directory
from conversations.tool_calls.schemas.agent_details import AgentDetails, agent_details
from dashboard.pages import tool_sections
from dashboard.pages.base_context import render_page


@require_safe
def agents(request: HttpRequest) -> HttpResponse:
    """List teams and agents; `?part=state` returns only what changes, which the page reloads by itself."""
    agent_colors.refresh_colors()
    is_part = request.GET.get("part") == "state"
    return render_page(
        request, "partials/agents_state.html" if is_part else "agents.html", teams=agent_directory.team_statuses()
    )


@require_safe
def agent(request: HttpRequest, team: str, name: str) -> HttpResponse:
    """Show one agent of a team: its output type, tools, handoffs and runs. 404 for an unknown agent."""
    agent_colors.refresh_colors()
    details = None if "\0" in team + name else agent_details(team, name)
    if details is None:
        raise NotFound("No worker has reported an agent with this name.")
    return render_page(
        request,
        "agent.html",
        team=team,
        name=name,
        title=hidden_characters.spelled_out(name),
        drawn_team=richtext.inline(team),
        agent=details.served,
        spent=spending.of_agent(name),
        output=_output(details),
        tools=[tool_sections.offer(tool) for tool in details.tools],
        transfers=[
            (tool_sections.offer(tool), tool.text("to"), mark_for_name(tool.text("to"))) for tool in details.transfers
        ],
        given_by=[(other, mark_for_name(other)) for other in details.given_by],
        problems=[richtext.inline(problem) for problem in details.problems],
        runs=[_run(run) for run in details.runs],
    )


def _output(details: AgentDetails) -> dict[str, object]:
    output = details.output
    text = json.dumps(output.schema, ensure_ascii=False) if output.schema is not None else ""
    return {"is": output, "type": richtext.inline(output.type[:200]), "tree": json_tree.draw(text) if text else None}


def _run(run: Run) -> dict[str, object]:
    title = run.conversation.title or run.conversation.key
    return {
        "is": run,
        "conversation": richtext.inline(title[:120]),
        "reason": richtext.inline(run.reason),
        "seq": run.ended_seq or run.queued_seq,
    }
