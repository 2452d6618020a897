"""Who held a run from when to when, beside the transcript: agents and stages, runs inside calls, waits, long ones."""

import json
import re
from itertools import pairwise

import pytest

from conversations.events import log
from conversations.events.log.records import Stored
from conversations.models import Conversation, Run
from conversations.rendering import run_timeline
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide
from dashboard.pages import conversation_sidebar
from tests.support import teamwork
from tests.support.cast import client_of

SECOND = 1_000_000


def run_events(*events, run="r"):
    """Events of a run, given as (seconds, kind, facts), numbered from 1."""
    return [
        Stored("c", n, kind, int(at * SECOND), "agent:Dialogue", run, None, None, json.dumps(more))
        for n, (at, kind, more) in enumerate(events, 1)
    ]


def turn(agent, parent=None, ms=0.0):
    return {"agent": agent, "duration_ms": ms} | ({"parent_call": parent} if parent else {})


def stage(name, agent="", parent=None):
    return {"agent": agent, "stage": name} | ({"parent_call": parent} if parent else {})


def drawn(events, status="done"):
    (line,) = run_timeline.lines([("r", "agent", "Dialogue", status)], events)
    return line


def spans(line):
    return [(span.kind, span.mark.title if span.mark else "", span.words, span.took) for span in line.spans]


REPORT = [
    (0, "run.queued", {}),
    (0.1, "run.started", {}),
    (1, "agent.handoff", {"from_agent": "Dialogue", "to_agent": "Triage"}),
    (1, "town_hall.stage", stage("triage", "Triage")),
    (2, "agent.handoff", {"from_agent": "Triage", "to_agent": "Coordinator"}),
    (2, "town_hall.stage", stage("conversation_formatting", "Coordinator")),
    (3, "town_hall.stage", stage("incident_formatting", "Formatter", "call-1")),
    (5, "model.turn", turn("Formatter", "call-1", 2000)),
    (5, "town_hall.stage", stage("conversation_formatting", "Formatter", "call-1")),
    (6, "approval.requested", {"name": "file_incident"}),
    (6, "run.waiting", {"reason": "approval"}),
    (3606, "run.resumed", {"reason": "approve"}),
    (3606.2, "run.started", {"attempt": 2}),
    (3608, "run.done", {}),
]


def test_a_run_is_told_by_who_held_it_from_when_to_when():
    line = drawn(run_events(*REPORT))

    assert spans(line) == [
        ("work", "Dialogue", "", "900 ms"),
        ("work", "Triage", "", "1.0 s"),  # its stage has its name
        ("work", "Coordinator", "conversation formatting", "4.0 s"),
        ("inner", "Formatter", "incident formatting", "2.0 s"),
        ("wait", "", "waiting for approval of file_incident", "1.0 h"),
        ("work", "Coordinator", "", "1.8 s"),
    ]
    assert (line.state, line.took, line.stop, line.earlier) == ("done", "1.0 h", "", 0)


def test_bars_are_on_one_scale_in_order_and_a_long_wait_is_squeezed():
    line = drawn(run_events(*REPORT))

    work = [span for span in line.spans if span.kind != "inner"]
    assert all(a.x + a.width <= b.x + 8.1 for a, b in pairwise(work))
    assert all(span.x >= 0 and span.x + span.width <= 1000.1 and span.width >= 8 for span in line.spans)
    wait = next(span for span in line.spans if span.kind == "wait")
    assert 200 < wait.width < 400
    inner, around = line.spans[3], line.spans[2]
    assert around.x < inner.x
    assert inner.x + inner.width < around.x + around.width


@pytest.mark.parametrize("cut", range(1, len(REPORT)))
def test_a_run_that_goes_on_says_since_when_and_can_be_stopped(cut):
    line = drawn(run_events(*REPORT[:cut]), status="running")

    assert line.stop == "r"
    assert line.took == ""
    assert line.spans
    assert [span.took == "" for span in line.spans if span.kind != "inner"][-1]
    assert line.spans[-1].seq <= cut


def test_two_stages_of_one_agent_are_two_spans():
    events = [*REPORT[:2], (1, "x.stage", stage("one")), (2, "x.stage", stage("two")), (4, "run.failed", {})]

    line = drawn(run_events(*events), status="failed")

    assert spans(line) == [("work", "Dialogue", "one", "1.9 s"), ("work", "Dialogue", "two", "2.0 s")]
    assert (line.state, line.word) == ("failed", "failed")


def test_a_long_time_in_the_queue_is_told_and_a_pause_is_no_question():
    events = [(0, "run.queued", {}), (30, "run.started", {}), (31, "run.waiting", {"reason": "pause"})]

    line = drawn(run_events(*events), status="waiting")

    assert [span[:3] for span in spans(line)] == [
        ("queue", "", "waiting for a worker"),
        ("work", "Dialogue", ""),
        ("wait", "", "paused"),
    ]


def test_of_a_long_run_the_newest_spans_are_shown_and_the_others_counted():
    ring = [(n, "agent.handoff", {"to_agent": f"Agent {n}"}) for n in range(1, 200)]

    line = drawn(run_events(*REPORT[:2], *ring), status="running")

    assert (len(line.spans), line.earlier) == (run_timeline.SHOWN, 200 - run_timeline.SHOWN)
    assert line.spans[-1].mark.title == "Agent 199"


def test_hostile_names_and_stages_stay_words():
    evil = "<img src=x onerror=alert(1)>\u202e"
    events = [*REPORT[:2], (1, "agent.handoff", {"to_agent": evil}), (2, "x.stage", stage(evil))]

    (_, last) = drawn(run_events(*events), status="running").spans

    assert "<img" not in last.mark.name
    assert "\u202e" not in last.mark.name + last.words


# on the page


@pytest.fixture
def flood(team, db):
    teamwork.team()
    return teamwork.ask(team["operator"])


def panel(user, key="flood"):
    html = client_of(user).get(f"/conversations/{key}/panel/").content.decode()
    return html, " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.mark.django_db
def test_the_panel_tells_of_a_run_that_waits_and_how_to_stop_it(flood, team):
    html, words = panel(team["operator"])

    assert "Runs 1" in words
    assert "waiting for approval of file_incident" in words
    assert f'form="stopping" name="run" value="{flood.run}"' in html
    assert f"?event={Run.objects.get().queued_seq + 3}#e" in html


@pytest.mark.django_db
def test_the_panel_follows_the_run_to_its_end(flood, team):
    teamwork.go_on(decide.decide(team["approver"], flood.id, "approve"))

    html, words = panel(team["viewer"])

    assert "Dialogue done" in words
    assert 'form="stopping"' not in html


@pytest.mark.django_db
def test_the_newest_five_runs_are_shown_and_that_there_are_more(flood, team):
    stop_and_rerun.cancel_run(team["operator"], flood.run)
    for n in range(5):
        teamwork.fail(team["operator"], client_id=f"more-{n}")

    _, words = panel(team["operator"])

    assert "Runs 5+" in words
    assert words.count("Dialogue failed") == 5


@pytest.mark.django_db
def test_a_conversation_without_runs_has_no_timeline(team):
    log.append([log.from_internal("quiet", {"event": "log", "text": "hm"}, teamwork.token_principal("robot"))])

    assert "Runs" not in panel(team["viewer"], "quiet")[1]


@pytest.mark.django_db
def test_a_claim_is_in_no_timeline(flood, team):
    for kind in ("agent.handoff", "town_hall.stage", "run.done"):
        claim = {
            "event": kind,
            "run_id": flood.run,
            "agent": "Eve",
            "to_agent": "Eve",
            "from_agent": "x",
            "stage": "Eve",
        }
        teamwork.claim_from_outside("flood", claim)

    assert "Eve" not in str(conversation_sidebar.panel_context(Conversation.objects.get(key="flood"))["timeline"])


@pytest.mark.django_db
def test_stopping_without_scripts_leads_back_to_the_end_of_the_run(flood, team):
    answer = client_of(team["operator"]).post("/runs/stop/", {"run": flood.run})

    run = Run.objects.get()
    assert (run.status, answer.status_code) == ("cancelled", 302)
    assert answer["Location"] == f"/conversations/flood/?event={run.ended_seq}#e{run.ended_seq}"
