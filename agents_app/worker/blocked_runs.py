"""Handle runs that wait for something other than a person: for an MCP server, or for an agent that no longer exists.
Called periodically by the worker."""

import json
from collections.abc import Collection, Mapping

from django.db.models import Exists, OuterRef, QuerySet

from conversations.core.database_clock import database_now
from conversations.events.response_ids import PLAIN_MODEL
from conversations.models import Agent, Event, Run
from conversations.runs import stop_and_rerun
from conversations.runs.act_on_each import act_on_each

AT_A_TIME = 100  # runs that are looked at in one round

_looked_upto: dict[str, str] = {}  # the last run that a round looked at, by what it looked for


def requeue_runs_with_server(connected: Mapping[str, Collection[str]]) -> list[str]:
    """Queue the runs again whose MCP server is connected here; return their ids. `connected`: team → servers. Sync."""
    runs = _next(Run.objects.filter(status="waiting", reason="server"), "server")
    servers = {run.id: _server_of(run) for run in runs}

    def requeue(run: Run) -> bool:
        return stop_and_rerun.requeue_waiting_for_server(run.id, f"the MCP server {servers[run.id]} is connected")

    ready = [run for run in runs if servers[run.id] in connected.get(run.team, ())]
    return [run.id for run in act_on_each(ready, requeue)]


def end_orphaned_runs(served_here: Mapping[str, Collection[str]]) -> list[str]:
    """End the queued runs of agents that their team, served here, no longer has; return their ids. Sync.

    `served_here`: team → names of its agents, which are served whether or not their rows were renewed in time. Runs of
    teams that are not served here stay queued until their worker returns. A plain model's run may have the team that
    hosts its tools.
    """
    served = Agent.objects.filter(team=OuterRef("team"), name=OuterRef("agent"), served_until__gt=database_now())
    left = Run.objects.filter(status="queued", team__in=served_here).exclude(team="").exclude(agent=PLAIN_MODEL)
    left = left.exclude(Exists(served))

    def end(run: Run) -> bool:
        why = f"the team {run.team} no longer has the agent {run.agent}: it was removed or renamed"
        return stop_and_rerun.end_as_incompatible(run.id, why)

    orphaned = [run for run in _next(left, "agent") if run.agent not in served_here[run.team]]
    return [run.id for run in act_on_each(orphaned, end)]


def _next(runs: QuerySet[Run], what: str) -> list[Run]:
    """Return the runs to look at in this round, without their states. A round continues after the last run of the one
    before, so that runs that still have to wait hold up no others."""
    page = list(runs.filter(id__gt=_looked_upto.get(what, "")).order_by("id").defer("state")[:AT_A_TIME])
    _looked_upto[what] = page[-1].id if len(page) == AT_A_TIME else ""
    return page


def _server_of(run: Run) -> str:
    events = Event.objects.filter(conversation=run.conversation_id, run=run.id, kind="run.waiting").order_by("-seq")
    body = events.values_list("body", flat=True).first()
    return str(json.loads(body).get("server") or "") if body else ""
