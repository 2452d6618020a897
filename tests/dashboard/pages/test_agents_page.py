"""The agents page: teams, agents, tools and handoffs as workers told of them, and what their runs come to."""

import json
import time
from dataclasses import replace

import pytest
from django.db import connection

from conversations.conversation import group_trends
from conversations.events import log
from conversations.models import Agent, Conversation, Run, ToolCall, Turn
from conversations.rendering import agent_colors
from conversations.rendering.agents_graph import graph_of
from conversations.rendering.participant_marks import mark_for_name
from conversations.tool_calls import agent_activity, agent_directory, tool_activity
from tests.support import held_run, teamwork

pytestmark = pytest.mark.django_db


def test_without_a_worker_it_says_what_to_do(browser):
    page = browser.get("/agents/").content.decode()

    assert "No agents yet" in page
    assert "switchboard runagents" in page


def test_a_team_is_shown_with_models_tools_and_handoffs(browser):
    teamwork.team()

    page = browser.get("/agents/").content.decode()

    assert "3 agents, 1 tool" in page
    assert "use the built-in demo model" in page
    assert page.count(">demo model<") == 3
    assert "needs approval" in page
    assert "Coordinator hands off to Dialogue" in page
    assert "strict" in page


def test_runs_are_counted_and_the_last_failure_is_a_link(team, browser):
    teamwork.team()
    teamwork.ask(team["operator"], key="a")
    teamwork.fail(team["operator"], key="b", error="boo")
    teamwork.say(team["operator"], key="c")

    (town,) = agent_directory.team_statuses()
    dialogue = next(agent for agent in town.agents if agent.row.name == "Dialogue")

    assert (dialogue.live, dialogue.ended, dialogue.failed) == ({"waiting": 1, "queued": 1}, 1, 1)
    assert dialogue.state == ("waiting", "1 waiting, 1 queued")
    assert dialogue.failure is not None
    assert f"/conversations/b/?event={dialogue.failure.seq}" in browser.get("/agents/?part=state").content.decode()


def test_a_message_that_another_run_took_in_is_no_run(team):
    teamwork.team()
    teamwork.fail(team["operator"], key="a")
    teamwork.fail(team["operator"], key="b")
    Run.objects.filter(conversation__key="b").update(status="delivered")

    (town,) = agent_directory.team_statuses()

    assert sum(agent.ended for agent in town.agents) == 1
    assert len(group_trends.runs_queued(time.time_ns() // 1000)) == 1


def test_a_run_counts_for_whom_it_was_handed_to_and_their_turns_are_drawn(team, browser, monkeypatch):
    teamwork.team()
    for key in ("a", "b"):
        teamwork.say(team["operator"], key=key)
        claimed = teamwork.claim(key)
        turn = {"event": "model.turn", "model": "m", "usage": {"input_tokens": 1}}
        log.append([claimed.event({**turn, "agent": name}) for name in ("Dialogue", "Triage", "Triage")])
        if key == "a":
            held_run.finish(claimed, {"event": "run.done", "duration_ms": 1})

    (town,) = agent_directory.team_statuses()
    agents = {agent.row.name: agent for agent in town.agents}
    page = browser.get("/agents/?part=state").content.decode()

    assert {name: agent.runs for name, agent in agents.items()} == {"Dialogue": "1", "Triage": "1", "Coordinator": "0"}
    assert {name: sum(agent.activity.turns) for name, agent in agents.items()} == {
        "Dialogue": 2, "Triage": 4, "Coordinator": 0,
    }  # fmt: skip
    assert 'aria-label="4 turns in the last 8 hours"' in page
    assert 'title="0 begun here, 1 handed over by other agents">1</td>' in page
    monkeypatch.setattr(agent_activity, "TURNS", 3)
    assert agent_activity.by_agent()["Triage"].is_cut


def test_turns_of_a_clock_that_is_ahead_are_added_to_those_of_the_last_span():
    now = 100 * agent_activity.SPAN_US - 1
    conversation = Conversation.objects.create(key="c", last_at=1)
    for seq, at in enumerate((now - 1, now - 2, now + agent_activity.SPAN_US, now + 3 * agent_activity.SPAN_US), 1):
        Turn.objects.create(
            conversation=conversation, seq=seq, at=at, agent="Desk", model="m", run="r", is_demo=False,
            input_tokens=1, output_tokens=1, cached_tokens=0,
        )  # fmt: skip

    assert agent_activity.by_agent(now)["Desk"].turns[-1] == 4


def test_who_was_handed_a_run_waits_with_its_call(team):
    teamwork.team()
    teamwork.ask(team["operator"], agent="Coordinator")

    (town,) = agent_directory.team_statuses()

    states = {agent.row.name: agent.state for agent in town.agents}
    assert states["Dialogue"] == ("waiting", "1 waiting")
    assert states["Coordinator"] == ("waiting", "1 waiting for approval")
    assert states["Triage"] == ("done", "idle")


@pytest.mark.parametrize(
    ("live", "asking", "words"),
    [
        ({"waiting": 1}, 2, "2 waiting for approval"),
        ({"waiting": 3, "queued": 1}, 2, "3 waiting, 1 queued"),
        ({"running": 1}, 1, "1 waiting for approval, 1 running"),
        ({"waiting": 1}, 0, "1 waiting"),
    ],
)
def test_an_agents_own_requests_are_told_beside_its_runs(live, asking, words):
    teamwork.team()
    agent = agent_directory.team_statuses()[0].agents[0]

    assert replace(agent, live=live, asking=asking).state == ("waiting", words)


def test_who_is_no_longer_served_says_since_when(browser):
    teamwork.team(served_until=1_700_000_000_000_000)

    page = browser.get("/agents/").content.decode()

    assert page.count("not available") == 3
    assert "2023-11-14" in page


def test_hostile_names_and_broken_rows_stay_words(browser):
    name = "<b>\u202ex\"'"
    tools = json.dumps([{"name": name, "schema": 3}, "odd", {}])
    Agent.objects.create(
        team=name, name=name, description=name, model=name, tools=tools, handoffs=json.dumps([name, 3])
    )
    Agent.objects.create(team="broken", name="x", tools="{", handoffs="7")

    page = browser.get("/agents/").content.decode()

    assert "<b>\u202e" not in page
    assert "\u202e" not in page
    assert "No agents yet" not in page


def test_a_cycle_of_handoffs_is_drawn_in_both_directions():
    agents = [(name, mark_for_name(name)) for name in ("C", "A", "B")]
    graph = graph_of(agents, [("A", "B"), ("B", "C"), ("C", "A"), ("A", "A"), ("A", "gone")], ["A"])

    places = {node.mark.name: node.place for node in graph.nodes}
    assert places["A"].right < places["B"].x < places["C"].x or places["B"].x == places["C"].x > places["A"].right
    assert [arc.words for arc in graph.arcs] == [
        "A hands off to B", "B hands off to C", "C hands off to A", "A hands off to A"
    ]  # fmt: skip
    assert all(arc.path.count("M") == 1 for arc in graph.arcs)


def test_an_agent_has_its_stored_hue_everywhere(team, browser, monkeypatch):
    teamwork.team()
    Agent.objects.filter(name="Dialogue").update(hue=9)
    monkeypatch.setattr(agent_colors, "_looked_at", -100.0)
    teamwork.say(team["operator"])

    assert 'class="name clip" data-hue="9" dir="auto" title="Dialogue"' in browser.get("/agents/").content.decode()
    assert 'data-hue="9"' in browser.get("/conversations/flood/").content.decode()


def called(number, status="done", *, agent="Coordinator", schema=teamwork.SCHEMA, run="r", ago_s=60):
    """Store calls as the log would have folded them."""
    at = time.time_ns() // 1000 - ago_s * 1_000_000
    first = ToolCall.objects.count()
    ToolCall.objects.bulk_create(
        ToolCall(
            id=f"call-{first + n}", conversation_id=1, run=run, call_id=f"c{first + n}", agent=agent,
            name="file_incident", schema=schema, called_seq=first + n, status=status, started_at=at,
        )
        for n in range(number)
    )  # fmt: skip


def activity_of():
    """The calls of the team's one tool."""
    (town,) = agent_directory.team_statuses()
    (tool,) = town.tools
    return tool.activity


def test_a_tool_tells_how_many_of_its_calls_failed(browser):
    teamwork.team()
    called(5)
    called(1, "failed")
    called(1, "timeout")
    called(2, "rejected")  # did not run
    called(1, "failed", ago_s=25 * 3600)
    called(1, "failed", agent="Coordinator of another team")
    called(1, "failed", run=None)  # observed
    called(1, "failed", schema="00" * 32)

    activity = activity_of()

    assert (activity.calls, activity.failed, activity.rate) == ("7", 2, "28.6 %")
    page = browser.get("/agents/?part=state").content.decode()
    assert 'title="2 of 7 calls failed"><span class="state" data-state="failed">28.6 %</span>' in page


def test_calls_are_counted_up_to_a_bound(browser, monkeypatch):
    teamwork.team()
    assert (activity_of().calls, activity_of().rate) == ("0", "")
    called(5)
    monkeypatch.setattr(tool_activity, "CALLS", 3)

    assert (activity_of().calls, activity_of().rate) == ("3+", "0.0 %")


def test_the_calls_of_a_day_are_walked_by_the_index_of_all():
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan=off")  # so few rows are otherwise read without an index
        explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
        cursor.execute(explain + tool_activity._ACTIVITY, [0, 10])
        plan = str(cursor.fetchall())

    assert "call_newest" in plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan
