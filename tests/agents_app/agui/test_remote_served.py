"""A remote agent behind a real server that is killed: nothing is lost, and a person has it run again."""

import json
import shutil
import urllib.request

import pytest

from tests.support.agui import checked, input_of, pieces, text_of
from tests.support.live import Server, prepared, until


@pytest.fixture
def server(tmp_path, elsewhere):
    registered = json.dumps({"Weather": {"url": elsewhere, "token": "there-1"}})
    made = Server(tmp_path / "data", SWITCHBOARD_AGUI_AGENTS=registered, SWITCHBOARD_AGUI_HOSTS="127.0.0.1")
    shutil.copytree(prepared(), made.data_dir)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.terminate()


def events_of(server, token, thread, words, **more):
    """Run the agent by our own AG-UI door."""
    body = json.dumps(input_of(thread, words, **more)).encode()
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    http_request = urllib.request.Request(f"{server.url}/api/v1/agui/agents/Weather", body, head)
    with urllib.request.urlopen(http_request, timeout=60) as answer:
        writes = [block + b"\n\n" for block in answer.read().split(b"\n\n") if block]
    return checked(pieces(writes))


RUNS = "SELECT status FROM conversations_run ORDER BY queued_seq"


@pytest.mark.slow
@pytest.mark.crash
def test_what_an_agent_elsewhere_was_asked_survives_a_kill_of_the_server(server):
    token = server.token()
    server.start()

    assert text_of(events_of(server, token, "killed-first", "hello")) == "You said: hello"

    message = {"type": "message", "conversation_id": "killed", "sender": "Rosa", "recipient": "agent:Weather"}
    server.publish(token, "chat:killed", message | {"content": "hang on"}, "killed-1")
    until(lambda: server.column("SELECT 1 FROM conversations_event WHERE kind='token' AND body LIKE '%Thin%'"))
    interrupt = events_of(server, token, "killed-ask", "ask me")[-1].outcome.interrupts[0]
    server.kill()
    server.start()
    until(lambda: "interrupted" in server.column(RUNS), what="the run that was lost to be told")

    resume = [{"interruptId": interrupt.id, "status": "resolved", "payload": True}]
    events = events_of(server, token, "killed-ask", "ask me", run="front-run-2", resume=resume)

    assert text_of(events) == 'resumed with [{"approved": true}]'
    (lost,) = server.column("SELECT id FROM conversations_run WHERE status='interrupted'")
    status, again = server.request("POST", f"/api/v1/runs/{lost}/again", b"{}", token)
    assert status in (200, 201), again
    until(lambda: server.column(RUNS).count("running") == 1, what="the run to run again")


def test_an_agent_that_is_registered_while_the_server_runs_is_served_until_it_is_removed(tmp_path, elsewhere):
    server = Server(tmp_path / "data", SWITCHBOARD_AGUI_HOSTS="127.0.0.1")
    shutil.copytree(prepared(), server.data_dir)
    token = server.token()
    server.start()
    imports = "from conversations.runs import edit_remote_agents as r\n"
    imports += "from conversations.core.remote_agent_setting import RemoteAgent\n"
    imports += "from conversations.core.principals import SYSTEM\n"
    served = "SELECT name FROM conversations_agent WHERE team='AG-UI registered'"
    try:
        remote = f"RemoteAgent('Weather', {elsewhere!r}, 'there-1')"
        server.command("shell", "--no-imports", "-c", f"{imports}r.register(SYSTEM, {remote})")
        until(lambda: server.column(served) == ["Weather"], what="the worker to serve it")

        assert text_of(events_of(server, token, "registered-first", "hello")) == "You said: hello"

        server.command("shell", "--no-imports", "-c", f"{imports}r.remove(SYSTEM, 'Weather')")
        until(lambda: server.column(served) == [], what="the worker to serve it no more")
    finally:
        server.terminate()
