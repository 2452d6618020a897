"""Runs that cannot go on with what they paused with: parked with a reason for people, their call never made."""

import json
from pathlib import Path

import pytest
from agents import Agent, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from django.conf import settings

from agents_app.teams.definition import Team
from agents_app.worker import blocked_runs, saved_state
from agents_app.worker.saved_state import Incompatible, SavedState
from conversations.core.errors import Conflict
from conversations.events import log
from conversations.models import Agent as AgentRow
from conversations.models import Approval, Run, ToolCall
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import decide
from conversations.runs.claims import Claim
from dashboard.pages.conversation_entries import entries_of
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.cast import cast
from tests.support.live import until
from tests.support.visits import words_of

pytestmark = pytest.mark.django_db(transaction=True)


class Desk:
    """A team whose `file` asks; as each process would make it."""

    def __init__(self):
        self.filed = []

    def team(self, *steps):
        @function_tool(needs_approval=True)
        def file() -> str:
            """File."""
            self.filed.append(1)
            return "filed"

        clerk = Agent(name="Clerk", model=ScriptedModel(steps), tools=[file])
        return Team(name="desk", agents=[clerk], entry=["Clerk"])


@pytest.fixture
def parked():
    """Have a run wait, put other states in its place one after the other, and let each be resumed."""
    people, desk = cast(), Desk()

    def go_on(states):
        with working(desk.team(*[[function_call("file", {}, call_id=f"c{n}")] for n in range(len(states))])):
            for n in range(len(states)):
                send_message(key=f"k{n}")
            ended_runs(len(states))
        first_run = Run.objects.order_by("id").first()
        tools = (first_run.sdk or "").rpartition("/")[2]
        good = json.loads(first_run.state)["state"]
        for run, change in zip(Run.objects.order_by("id"), states, strict=True):
            state, mac, sdk = saved_state.sign(run.id, SavedState(change(good), 1), tools)
            Run.objects.filter(id=run.id).update(state=state, state_mac=mac, sdk=sdk)
        for approval in Approval.objects.all():
            decide.decide(people["approver"], approval.id, "approve")
        with working(desk.team([assistant_message("Done.")])):
            runs = ended_runs(len(states))
        return desk, runs

    return go_on


def changed(**more):
    return lambda good: json.dumps(json.loads(good) | more)


def without(name):
    return lambda good: json.dumps({key: value for key, value in json.loads(good).items() if key != name})


CHANGES = {
    "of a newer SDK": changed(**{"$schemaVersion": "9.9"}),
    "of no version": without("$schemaVersion"),
    "cut off": lambda good: good[: len(good) // 2],
    "not an object": lambda good: "[]",
    "of another agent": changed(current_agent={"name": "Somebody else"}),
    "without an agent": without("current_agent"),
    "empty": lambda good: "",
}


@pytest.mark.slow
def test_states_that_do_not_fit_park_their_runs_with_a_reason(parked):
    desk, runs = parked(list(CHANGES.values()))

    assert {run.status for run in runs} == {"incompatible"}
    assert desk.filed == []
    assert set(ToolCall.objects.values_list("status", flat=True)) == {"blocked"}
    reasons = [event_bodies("run.incompatible", f"k{n}")[0]["reason"] for n in range(len(CHANGES))]
    assert all(reason and "\n" not in reason.strip() and len(reason) < 1000 for reason in reasons), reasons


@pytest.mark.slow
def test_recorded_states_of_every_version_are_parked_readably(parked):
    folder = Path(settings.SAMPLES_DIR) / "openai-agents-run-state"
    texts = [path.read_text() for path in sorted(folder.glob("*.json"))]
    if not texts:
        pytest.skip(f"no sample data: openai-agents-run-state is not in {settings.SAMPLES_DIR}")

    desk, runs = parked([lambda good, text=text: text for text in texts])

    assert {run.status for run in runs} == {"incompatible"}
    assert desk.filed == []
    for n in range(len(texts)):
        reason = event_bodies("run.incompatible", f"k{n}")[0]["reason"]
        assert "agent" in reason.lower(), reason


# What is another one today than when the run paused


def approved_run(desk):
    """Have a run ask, and its question be approved."""
    people = cast()
    with working(desk.team([function_call("file", {}, call_id="c1")])):
        send_message()
        ended_runs()
    decide.decide(people["approver"], Approval.objects.get().id, "approve")
    return people


def words(key="c"):
    """Return what the conversation's page says."""
    drawn = "".join(map(str, entries_of(log.newest_page(key))))
    return words_of(drawn)


def test_a_signed_state_is_that_of_one_run_and_one_release():
    state, mac, sdk = saved_state.sign("first", SavedState("{}", turns=1), "tools")
    claim = Claim("first", 2, "c", "Clerk", "agent", 1, state, mac, sdk)
    assert saved_state.verify(claim) == (SavedState("{}", turns=1, interjections=[]), "tools")

    for change in ({"run": "second"}, {"sdk": f"{sdk}2"}, {"state": state.replace('"turns": 1', '"turns": 2')}):
        with pytest.raises(Incompatible, match="does not match its signature"):
            saved_state.verify(claim._replace(**change))


@pytest.mark.parametrize("form", ["1.17", "1.20"])
def test_a_state_of_an_earlier_release_that_the_sdk_still_reads_goes_on(monkeypatch, form):
    desk = Desk()
    with monkeypatch.context() as then:
        then.setattr(saved_state, "CURRENT_SCHEMA_VERSION", form)
        approved_run(desk)
        run = Run.objects.get()
        saved = SavedState(changed(**{"$schemaVersion": form})(json.loads(run.state)["state"]), 1)
        state, mac, sdk = saved_state.sign(run.id, saved, run.sdk.rpartition("/")[2])
        Run.objects.update(state=state, state_mac=mac, sdk=sdk)
    with working(desk.team([assistant_message("Done.")])):
        (run,) = ended_runs()

    assert (run.status, desk.filed) == ("done", [1])


@pytest.mark.parametrize("form", ["0.9", "9.9"], ids=["older", "newer"])
def test_a_state_of_a_release_that_the_sdk_does_not_read_is_parked(monkeypatch, form):
    desk = Desk()
    with monkeypatch.context() as then:
        then.setattr(saved_state, "CURRENT_SCHEMA_VERSION", form)
        approved_run(desk)
    with working(desk.team([assistant_message("Done.")])):
        (run,) = ended_runs()

    assert (run.status, desk.filed) == ("incompatible", [])
    assert f"the state was saved by another release of the Agents SDK: schema {form}, now" in words()


@pytest.mark.parametrize("name", ["Registrar", None], ids=["renamed", "removed"])
def test_a_run_whose_agent_left_its_team_ends(name):
    desk = Desk()
    people = approved_run(desk)
    team = desk.team([assistant_message("Done.")])
    others = [Agent(name=name or "Other", model=ScriptedModel([]), tools=team.agents[0].tools if name else [])]
    with working(Team(name="desk", agents=others, entry=[others[0].name])):
        (run,) = ended_runs()

    assert (run.status, desk.filed, ToolCall.objects.get().status) == ("incompatible", [], "blocked")
    assert "the team desk no longer has the agent Clerk: it was removed or renamed" in words()
    with pytest.raises(Conflict, match="no team has the agent Clerk anymore: write to another agent"):
        stop_and_rerun.run_again(people["operator"], run.id)


@pytest.mark.slow
def test_a_run_of_a_team_that_nobody_serves_now_waits_for_it():
    desk = Desk()
    approved_run(desk)
    other = Team(name="other", agents=[Agent(name="Other", model=ScriptedModel([]))], entry=["Other"])
    with working(other) as worker:
        AgentRow.objects.filter(name="Clerk").delete()
        assert blocked_runs.end_orphaned_runs({"other": ["Other"]}) == []
        until(lambda: worker.is_serving, what="the worker")
    assert Run.objects.get().status == "queued"

    with working(desk.team([assistant_message("Done.")])):
        (run,) = ended_runs()

    assert (run.status, desk.filed) == ("done", [1])


@pytest.mark.slow
def test_the_page_says_why_a_run_was_parked_and_what_can_be_done():
    desk = Desk()
    people = approved_run(desk)
    Run.objects.update(state_mac="0" * 64)
    with working(desk.team([assistant_message("Done.")])):
        (run,) = ended_runs()

    assert "the saved state does not match its signature: the state or the secret key was changed" in words()
    assert "Run again to start over with the current team, or take over and answer yourself." in words()
    drawn = "".join(map(str, entries_of(log.newest_page("c"))))
    assert (
        f'<button class="button" data-size="small" form="again" name="run" value="{run.id}">Run again</button>' in drawn
    )
    again = desk.team([function_call("file", {}, call_id="c1")])
    stop_and_rerun.run_again(people["operator"], run.id)
    with working(again):
        assert ended_runs(2)[1].status == "waiting"  # asked anew: nothing that was decided before counts
    assert desk.filed == []


def test_a_run_whose_tool_goes_away_before_its_approval_is_requested_ends_with_the_reason():
    """As a tool of an MCP server does that is lost while another call of the same answer is made."""
    desk = Desk()
    team = desk.team([function_call("lose", {}, call_id="c1"), function_call("file", {}, call_id="c2")])
    clerk = team.agents[0]

    @function_tool
    def lose() -> str:
        """Lose the server."""
        clerk.tools = [tool for tool in clerk.tools if tool.name != "file"]
        return "lost"

    clerk.tools = [*clerk.tools, lose]
    with working(team):
        send_message()
        (run,) = ended_runs()

    assert (run.status, run.reason) == ("incompatible", "Clerk no longer has the tool file")
    assert (desk.filed, Approval.objects.count()) == ([], 0)
