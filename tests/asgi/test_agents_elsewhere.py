"""A web node of PostgreSQL whose agents run elsewhere: what it says while their worker is away or starts."""

import json

import pytest

from tests.support.doors import Caller, encode
from tests.support.live import Server, on_postgresql, until
from tests.support.services import PostgresServer, running

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(300)]
ENDS_BY_REJECTION = {"SWITCHBOARD_APPROVAL_S": "600", "SWITCHBOARD_APPROVAL_EXPIRY": "reject"}
START = 120.0  # seconds a process may take to import the agents' SDK on a machine that does other things, too


@pytest.fixture
def node(tmp_path):
    """A web node; nobody runs agents yet."""
    with running(PostgresServer()) as cluster:
        node = Server(
            tmp_path / "data", "--web-only", **ENDS_BY_REJECTION, **on_postgresql(cluster.create("elsewhere"))
        )
        node.command("migrate")
        yield node.start()
        node.kill()


class WorkerBeside:
    """`runagents` beside a web node, until it is stopped."""

    def __init__(self, node):
        log = node.data_dir / "worker.log"
        self._process = node.spawn(["runagents"], log, log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(START)


def respond(node, token):
    """Ask Dialogue for a response; return the status, whether to try again, and what it is."""
    body = encode({"model": "Dialogue", "input": "Hello"})
    answer = Caller(node, token).ask("POST", "/v1/responses", body, Content_Type="application/json")
    return answer.status, answer.headers.get("retry-after"), answer.body


def say(node, token, key):
    """Say something to Dialogue; return the status."""
    message = {"type": "message", "conversation_id": key, "sender": "Rosa", "recipient": "agent:Dialogue"}
    return node.publish(token, f"chat:{key}", message | {"content": "Hello"})[0]


def outputs(node, key):
    """Return what agents answered in a conversation."""
    with node.database() as database:
        sql = f"""SELECT count(*) FROM conversations_event e JOIN conversations_conversation c ON c.id=e.conversation_id
        WHERE c.key='{key}' AND e.kind='output'"""
        return database.execute(sql).fetchone()[0]


def are_served(node):
    """Return whether some worker serves Dialogue now."""
    with node.database() as database:
        sql = "SELECT count(*) FROM conversations_agent WHERE name='Dialogue' AND served_until>0"
        return bool(database.execute(sql).fetchone()[0])


def test_a_web_node_without_a_worker_is_ready_and_has_clients_try_again(node):
    token = node.token()

    assert node.request("GET", "/readyz")[0] == 200
    assert say(node, token, "early") == 201
    status, again, body = respond(node, token)

    assert (status, bool(again), body["error"]["code"]) == (503, True, "model_unavailable")


def test_what_is_said_while_the_worker_is_away_or_starts_is_answered_when_it_is_there(node):
    token = node.token()
    with WorkerBeside(node):
        until(lambda: are_served(node), within=START, what="the agents to be served")
    assert say(node, token, "away") == 201
    status, again, _ = respond(node, token)
    assert (status, bool(again)) == (503, True)

    with WorkerBeside(node):
        assert say(node, token, "starting") == 201
        until(lambda: outputs(node, "away") and outputs(node, "starting"), within=START, what="both to be answered")
        until(lambda: respond(node, token)[0] == 200, within=START, what="a response")


def test_request_whose_time_is_up_is_rejected_though_nobody_runs_agents(node):
    token = node.token()
    call = {"conversation_id": "late", "agent": "Coder", "name": "wipe", "tool_call_id": "c1", "args_raw": "{}"}

    def ask():
        _, answer = node.request("POST", "/api/v1/approvals/requests?wait_s=0", json.dumps(call).encode(), token)
        return answer

    assert ask()["status"] == "pending"
    with node.database() as database:
        database.execute("UPDATE conversations_approval SET deadline=1")

    until(lambda: ask()["status"] == "decided", what="the deadline to be noticed")

    assert (ask()["decision"], ask()["message"]) == ("reject", "Nobody decided in time.")
