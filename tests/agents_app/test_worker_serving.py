"""Agents inside `serve` and in `runagents`, in real processes: served, answered, stopped in order; a wrong team ends
the start with its reason."""

import contextlib
import json
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.live import Server, prepared, until
from tests.support.tiers import variants

MESSAGE = {"type": "message", "conversation_id": "c", "sender": "Rosa", "recipient": "agent:Dialogue"}


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path / "data")
    shutil.copytree(prepared(), made.data_dir)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.terminate()


@pytest.mark.slow
def test_a_citizen_is_answered_by_the_demo_model_and_the_server_stops_in_order(server):
    token = server.token()
    server.start()
    assert "Dialogue" in server.column(
        "SELECT name FROM conversations_agent WHERE is_entry"
    )  # whoever gets in finds them
    words = "There is a broken street lamp in Mill Lane, dangerous at night."
    server.publish(token, "chat:c", MESSAGE | {"content": words}, "m1")
    ended = "SELECT status FROM conversations_run WHERE status NOT IN ('queued', 'running')"
    until(lambda: server.column(ended), within=60, what="the run to wait or end")

    assert server.column(ended) == ["waiting"]
    assert server.column("SELECT name FROM conversations_toolcall WHERE status='waiting'") == ["file_incident"]
    server.terminate()
    log = server.data_dir / "switchboard.sqlite3-wal"
    assert not log.exists() or log.stat().st_size == 0
    assert server.column("SELECT name FROM conversations_node") == []  # web and worker took their rows away
    assert "Traceback" not in server.output()


@pytest.mark.slow
def test_the_first_request_of_all_is_answered_by_an_agent(server):
    token = server.token()
    server.launch()
    body = json.dumps({"model": "Dialogue", "input": "Hello."}).encode()
    status, answer = until(
        lambda: once_it_listens(server, "POST", "/v1/responses", body, token), within=60, what="the port"
    )

    assert (status, answer["status"]) == (200, "completed")


def once_it_listens(server, method, path, body=None, token=""):
    with contextlib.suppress(ConnectionRefusedError):
        return server.request(method, path, body, token)


def loading(server, tmp_path):
    """Start a server whose agents are loaded once a file is there; return that."""
    gate = tmp_path / "gate"
    server.environment |= {"SWITCHBOARD_TEAMS": "tests.teams.late", "LATE_TEAM_GATE": str(gate)}
    server.launch()
    status, starting = until(lambda: once_it_listens(server, "GET", "/readyz"), within=60, what="the port")
    assert (status, starting["not_ready"]) == (503, ["teams"])
    return gate


def test_pages_are_served_while_agents_are_loaded(server, tmp_path):
    gate = loading(server, tmp_path)

    assert server.request("GET", "/")[0] == 302
    assert "Switchboard is running" not in server.output()

    gate.touch()
    until(lambda: server.request("GET", "/readyz")[0] == 200, what="the agents")
    until(lambda: "Switchboard is running" in server.output(), what="the address")


@pytest.mark.slow
def test_what_is_for_agents_waits_until_they_are_loaded(server, tmp_path):
    """No request finds them unknown, and no message is stored without its run."""
    token = server.token()
    gate = loading(server, tmp_path)
    body = json.dumps({"model": "Dialogue", "input": "Hello."}).encode()

    with ThreadPoolExecutor() as pool:
        request = pool.submit(server.request, "POST", "/v1/responses", body, token)
        published = pool.submit(server.publish, token, "chat:c", MESSAGE | {"content": "Hello."}, "m1")
        assert server.request("GET", "/readyz")[0] == 503  # a request after them is answered
        assert not request.done()
        assert not published.done()
        gate.touch()
        status, answer = request.result(60)
        assert (status, answer["status"], published.result(60)[0]) == (200, "completed", 201)

    until(lambda: server.column("SELECT status FROM conversations_run") == ["done"] * 2, what="both runs")


@pytest.mark.slow
def test_a_wrong_team_ends_the_start_with_its_reason(server):
    server.environment["SWITCHBOARD_TEAMS"] = "no.such.team"
    server.launch()
    until(lambda: server.process.poll() is not None, within=60, what="the end")

    assert "team 'no.such.team': there is no such package (SWITCHBOARD_TEAMS)" in server.output()
    with pytest.raises(AssertionError, match="there is no such package"):
        server.command("runagents")


@pytest.mark.slow
def test_a_worker_of_its_own_serves_until_it_is_told_to_stop(server):
    process = server.spawn(["runagents"], server.log, server.log)
    until(lambda: server.column("SELECT name FROM conversations_agent WHERE is_entry"), within=60, what="the agents")
    process.terminate()

    assert process.wait(60) == 0
    assert server.output().strip() == "Running agents of Town Hall. Stop with Ctrl+C or SIGTERM."


@pytest.mark.slow
def test_a_worker_that_has_ended_spends_no_time_on_its_memory(server, tmp_path):
    server.is_newcomer = True  # with an interpreter of its own, to its end
    server.environment |= {"SWITCHBOARD_TEAMS": "tests.teams.remains", "REMAINS": str(tmp_path / "remains")}
    process = server.spawn(["runagents"], server.log, server.log)
    until(lambda: server.column("SELECT name FROM conversations_agent WHERE is_entry"), within=90, what="the agents")
    process.terminate()

    assert process.wait(60) == 0
    assert "Running agents of remains." in server.output()
    assert (tmp_path / "remains").read_text() == "ended\n"


@pytest.mark.slow
@pytest.mark.parametrize("after_s", variants([1.5, 3.0]))
def test_a_server_told_to_stop_while_its_agents_are_starting_ends(server, after_s):
    server.launch()
    began = time.monotonic()
    until(lambda: time.monotonic() - began >= after_s, what="the SDK's import to be under way")

    server.process.send_signal(signal.SIGINT)

    assert server.process.wait(60) in (0, -signal.SIGINT)
    assert "Traceback" not in server.output()


@pytest.mark.slow
def test_a_worker_of_its_own_ends_although_a_tool_never_returns(server):
    server.environment |= {"SWITCHBOARD_TEAMS": "tests.teams.hanging", "SWITCHBOARD_STOP_S": "0"}
    first = server.spawn(["runagents"], server.log, server.log)
    until(lambda: server.column("SELECT name FROM conversations_agent"), within=60, what="the agents")
    first.terminate()
    assert first.wait(60) == 0
    server.command("shell", "--no-imports", "-c", "from tests.support import agents_running as a; a.send_message()")

    worker = server.spawn(["runagents"], server.log, server.log)
    executing = "SELECT name FROM conversations_toolcall WHERE status='executing'"
    until(lambda: server.column(executing) == ["hang"], within=60, what="the tool to hang")
    worker.terminate()

    assert worker.wait(60) == 0
    assert server.column("SELECT status FROM conversations_run") == ["cancelled"]
