"""Runs that wait for an MCP server or for their team, when more of them wait than one round looks at."""

import pytest

from agents_app.worker import blocked_runs, saved_state
from agents_app.worker.saved_state import SavedState
from conversations.models import Agent, Run
from conversations.runs import claims
from conversations.runs.claims import Claim
from tests.runs.test_runs import say
from tests.support.claiming import served_agents

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def rounds(monkeypatch):
    Agent.objects.create(team="town", name="Dialogue", is_entry=True)
    monkeypatch.setattr(blocked_runs, "AT_A_TIME", 2)
    monkeypatch.setattr(blocked_runs, "_looked_upto", {})


def begun(key: str) -> Claim:
    say(key=key)
    (claim,) = claims.claim("host:1", served_agents("town", "Dialogue"), at_most=1)
    return claim


def state_of(claim: Claim, team: str) -> tuple[str, str, str]:
    return tuple(saved_state.sign(claim.run, SavedState("{}", 1, team), ""))


def test_runs_that_wait_for_a_server_that_stays_away_hold_up_no_others():
    waiting = {}
    for n, server in enumerate(("gone", "gone", "back", "gone", "back")):
        claim = begun(f"c{n}")
        state, mac, sdk = state_of(claim, "town")
        Run.objects.filter(id=claim.run).update(team="town")
        claims.suspend(claim, "server", about={"server": server, "detail": "away"}, state=state, state_mac=mac, sdk=sdk)
        waiting[claim.run] = server

    requeued = [run for _ in range(3) for run in blocked_runs.requeue_runs_with_server({"town": ["back"]})]

    assert requeued == [run for run, server in waiting.items() if server == "back"]
    assert blocked_runs.requeue_runs_with_server({"town": ["gone"]}) == list(waiting)[:2]


def test_runs_of_a_team_that_nobody_serves_hold_up_no_others():
    runs = {}
    for n, team in enumerate(("away", "away", "town")):
        claim = begun(f"c{n}")
        claims.requeue(claim, "the worker stopped", signed_state=state_of(claim, team))
        runs[claim.run] = team
        Run.objects.filter(id=claim.run).update(agent="Left", team=team)

    ended = [run for _ in range(2) for run in blocked_runs.end_orphaned_runs({"town": ["Dialogue"]})]

    assert ended == [run for run, team in runs.items() if team == "town"]


def test_a_run_of_an_agent_that_is_served_here_is_left_while_its_row_has_lapsed():
    claim = begun("c")
    claims.requeue(claim, "the worker stopped", signed_state=state_of(claim, "town"))
    assert Agent.objects.get().served_until == 0  # another worker of the team has stopped, or the database was away

    assert blocked_runs.end_orphaned_runs({"town": ["Dialogue"]}) == []
    assert Run.objects.get().status == "queued"
