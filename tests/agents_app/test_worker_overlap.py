"""A run whose next attempt begins here before the one before has left."""

import threading

import pytest
from agents import function_tool
from agents.testing import assistant_message, function_call

from agents_app.worker.agent_run import AgentRun
from conversations.models import Approval
from conversations.runs.approvals import decide
from switchboard import get_bus
from switchboard.bus import BusMessage
from tests.support.agents_running import ended_runs, event_bodies, send_message, team, working
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_stays_in_sight_of_its_worker_and_its_tools_may_publish(people, monkeypatch):
    entered, goes_on = threading.Event(), threading.Event()

    @function_tool(needs_approval=True)
    def file(street: str) -> str:
        """File."""
        entered.set()
        assert goes_on.wait(60)
        step = {"event": "log", "conversation_id": "c", "text": f"filed {street}"}
        get_bus().publish("stream:c", BusMessage("stream:c", step))
        return "filed"

    suspend = AgentRun._suspend

    def suspend_and_be_overtaken(run, *request):
        suspend(run, *request)
        decide.decide(people["approver"], Approval.objects.get().id, "approve")
        assert entered.wait(60)

    monkeypatch.setattr(AgentRun, "_suspend", suspend_and_be_overtaken)
    steps = [function_call("file", {"street": "Elm"}, call_id="c1")], [assistant_message("Done.")]
    with working(team(*steps, tools=[file])) as worker:
        send_message()
        until(lambda: worker.finished_runs == 1, what="the first attempt to leave")
        running = worker.facts()["running"]
        goes_on.set()
        (run,) = ended_runs()

    assert (run.status, run.attempt, running) == ("done", 2, 1)
    assert [body["text"] for body in event_bodies("log")] == ["filed Elm"]
