"""SIGKILL at six points around a tool call, in real processes: the tool's own file shows no effect twice, and every
doubt is told as one."""

import http.client
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.support.live import Server, prepared, until

# the point → what becomes of the run and of its call, and how often the tool had its effect
POINTS = {
    "before-lease": ("done", "done", 1),
    "after-lease": ("interrupted", None, 0),
    "before-tool": ("interrupted", "unknown", 0),
    "in-tool": ("interrupted", "unknown", 1),
    "after-tool": ("interrupted", "unknown", 1),
    "after-record": ("interrupted", "done", 1),
}
SHORT = ("in-tool", "before-tool", "after-record")  # of each kind of doubt one; the others run with `make faults`
ENDED = "SELECT status FROM conversations_run WHERE status NOT IN ('queued', 'running')"
CALLS = "SELECT status FROM conversations_toolcall"
MESSAGE = {"type": "message", "conversation_id": "c", "sender": "R", "recipient": "agent:Clerk", "content": "pay"}


@pytest.fixture
def server(tmp_path):
    (tmp_path / "effects").touch()
    made = Server(tmp_path / "data", EFFECTS=str(tmp_path / "effects"), SWITCHBOARD_TEAMS="tests.teams.ledger")
    shutil.copytree(prepared(), made.data_dir)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.terminate()


def pay(server, token):
    """Ask for a payment, once the agents are known; the server may die of it."""
    until(lambda: server.column("SELECT 1 FROM conversations_agent WHERE is_entry"), within=60, what="the agents")
    try:
        server.publish(token, "chat:c", MESSAGE, "payment")
    except (OSError, http.client.HTTPException):
        return


def lease_is_far_ahead(server):
    """Let the dead worker's lease be of a clock that was ahead: who alone runs agents does not wait for it."""
    with sqlite3.connect(server.data_dir / "switchboard.sqlite3") as database:
        database.execute("UPDATE conversations_run SET lease_until=lease_until * 2 WHERE status='running'")


@pytest.mark.crash
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "point",
    [
        p if p == "in-tool" else pytest.param(p, marks=pytest.mark.thorough if p in SHORT else pytest.mark.faults)
        for p in POINTS
    ],
)
def test_a_kill_around_a_tool_call_has_no_effect_twice_and_every_doubt_is_told(server, point):
    token = server.token()
    server.environment["SWITCHBOARD_FAILPOINT"] = f"{point}:1"
    server.start()
    pay(server, token)
    until(lambda: server.process.poll() is not None, within=60, what=f"death at {point}")
    assert server.process.returncode == -9

    lease_is_far_ahead(server)
    del server.environment["SWITCHBOARD_FAILPOINT"]
    server.start()
    until(lambda: server.column(ENDED), within=60, what="the run to be ended")

    run, call, count = POINTS[point]
    assert server.column(ENDED) == [run]
    assert server.column(CALLS) == ([call] if call else [])
    assert Path(server.environment["EFFECTS"]).read_text().split() == ["c"] * count


STEERING = {"type": "message", "conversation_id": "c", "sender": "R", "recipient": "agent:Clerk", "content": "be quick"}


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(180)
@pytest.mark.parametrize("point", ["after-delivery", pytest.param("after-step", marks=pytest.mark.faults)])
def test_a_kill_after_a_message_reached_a_run_neither_loses_it_nor_delivers_it_twice(server, point):
    """The run that took it in is interrupted; the next one of the conversation remembers it once, in its place."""
    (given := server.data_dir.parent / "given").touch()
    server.environment |= {"SWITCHBOARD_TEAMS": "tests.teams.steered", "GIVEN": str(given)}
    server.environment["SWITCHBOARD_FAILPOINT"] = f"{point}:1"
    token = server.token()
    server.start()
    pay(server, token)
    until(lambda: "in the tool" in given.read_text(), within=60, what="the tool to be entered")
    server.publish(token, "chat:c", STEERING | {"metadata": {"when": "next_step"}}, "steering")
    given.with_name("may-end").touch()
    until(lambda: server.process.poll() is not None, within=60, what=f"death at {point}")
    assert server.process.returncode == -9

    lease_is_far_ahead(server)
    del server.environment["SWITCHBOARD_FAILPOINT"]
    server.start()
    until(lambda: server.column(ENDED) == ["interrupted", "delivered"], within=60, what="the run to be ended")
    given.write_text("")
    server.publish(token, "chat:c", MESSAGE | {"content": "go on"}, "later")
    until(lambda: len(server.column(ENDED)) == 3, within=60, what="the next run")

    assert server.column("SELECT body FROM conversations_event WHERE kind='run.delivered'")[1:] == []
    assert given.read_text().splitlines() == ["be quick | go on"]


@pytest.mark.thorough
@pytest.mark.crash
@pytest.mark.timeout(180)
def test_a_budgets_question_outlives_a_kill_and_is_asked_and_decided_once(server):
    token = server.token()
    server.environment["SWITCHBOARD_FAILPOINT"] = "after-budget:1"
    server.start()
    limit = json.dumps({"scope": "run", "measure": "calls", "amount": "1"}).encode()
    assert server.request("POST", "/api/v1/budgets", limit, token)[0] == 201
    pay(server, token)
    until(lambda: server.process.poll() is not None, within=60, what="death once it asked")
    assert server.process.returncode == -9

    del server.environment["SWITCHBOARD_FAILPOINT"]
    server.start()
    [request] = server.request("GET", "/api/v1/approvals?status=pending", token=token)[1]["items"]
    assert request["why"] == "Budget reached: 1 of 1 tool call per run. Continue with 1 more tool call?"
    address, decision = (
        f"/api/v1/approvals/{request['approval_id']}/decision",
        json.dumps({"decision": "approve"}).encode(),
    )
    assert [server.request("POST", address, decision, token)[0] for _ in range(2)] == [200, 409]
    until(lambda: server.column(ENDED) == ["done"], within=60, what="the run to end")

    assert server.column("SELECT status FROM conversations_toolcall ORDER BY called_seq") == ["done", "done"]
    assert server.column("SELECT amount FROM conversations_budgetraise") == [1]
    assert Path(server.environment["EFFECTS"]).read_text().split() == ["c"]
