"""Runs that wait for a decision live through restarts and kills of their process, and go on. A kill around resuming has
no effect twice. Judged by the file that the tool writes."""

import http.client
import json
import shutil
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tests.agents_app.test_worker_crash import ENDED, lease_is_far_ahead
from tests.support.live import Server, on_postgresql, until
from tests.support.services import PostgresServer, running
from tests.support.tiers import variants

MANY = 20
ANSWERS = {
    "approve": {},
    "edit": {"arguments": {"amount": 70}},
    "respond": {"output": "It was paid by hand."},
    "reject": {"message": "Not now."},
}
# decision → point of the kill → what becomes of the run and of its call, and what was paid
KILLS = {
    "approve": {
        "before-lease": ("done", "done", "7"),
        "after-lease": ("interrupted", "blocked", ""),
        "before-tool": ("interrupted", "unknown", ""),
        "in-tool": ("interrupted", "unknown", "7"),
        "after-tool": ("interrupted", "unknown", "7"),
        "after-record": ("interrupted", "done", "7"),
    },
    "edit": {
        "before-lease": ("done", "done", "70"),
        "after-lease": ("interrupted", "blocked", ""),
        "before-tool": ("interrupted", "unknown", ""),
        "in-tool": ("interrupted", "unknown", "70"),
        "after-tool": ("interrupted", "unknown", "70"),
        "after-record": ("interrupted", "done", "70"),
    },
    "respond": {  # the tool is never entered
        "before-lease": ("done", "done", ""),
        "after-lease": ("interrupted", "blocked", ""),
        "after-tool": ("interrupted", "blocked", ""),
        "after-record": ("interrupted", "done", ""),
    },
    "reject": {
        "before-lease": ("done", "rejected", ""),
        "after-lease": ("interrupted", "rejected", ""),
    },
}
CASES = [(decision, point) for decision, points in KILLS.items() for point in points]
SHORT = [("approve", "in-tool"), ("edit", "before-tool")]  # the others: `make faults`


def serving(home, **environment):
    (home / "effects").touch()
    return Server(home / "data", EFFECTS=str(home / "effects"), SWITCHBOARD_TEAMS="tests.teams.cashier", **environment)


def ask(server, token, number):
    """Have so many runs ask, each in a conversation of its own."""
    until(lambda: server.column("SELECT 1 FROM conversations_agent WHERE is_entry"), within=60, what="the agents")
    payload = {"type": "message", "sender": "Rosa", "recipient": "agent:Cashier", "content": "Pay 7"}
    messages = [{"topic": f"chat:c{n}", "payload": {**payload, "conversation_id": f"c{n}"}} for n in range(number)]
    assert server.request("POST", "/api/v1/publish", json.dumps({"messages": messages}).encode(), token)[0] == 200
    pending = "SELECT 1 FROM conversations_approval WHERE status='pending'"
    until(lambda: len(server.column(pending)) == number, within=60, what="the questions")


def decide(server, token, approval, decision):
    path = f"/api/v1/approvals/{approval}/decision"
    return server.request("POST", path, json.dumps({"decision": decision, **ANSWERS[decision]}).encode(), token)[0]


def paid(server):
    return Path(server.environment["EFFECTS"]).read_text().splitlines()


@pytest.fixture(scope="module")
def asleep(tmp_path_factory):
    """A data directory of a server that was stopped with runs that wait, and a token for it."""
    home = tmp_path_factory.mktemp("asleep")
    server = serving(home)
    token = server.start().token()
    ask(server, token, MANY)
    server.terminate()
    return home, token


@pytest.fixture
def server(asleep, tmp_path):
    shutil.copytree(asleep[0] / "data", tmp_path / "data", ignore=lambda _, names: {"door.json", "lock"} & set(names))
    made = serving(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.terminate()


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("decision", "point"),
    [*variants(SHORT), *(pytest.param(*case, marks=pytest.mark.faults) for case in CASES if case not in SHORT)],
)
def test_a_kill_around_resuming_has_no_effect_twice(server, asleep, decision, point):
    of_it = "(SELECT id FROM conversations_conversation WHERE key='c0')"
    (approval,) = server.column(f"SELECT id FROM conversations_approval WHERE conversation_id={of_it}")
    server.environment["SWITCHBOARD_FAILPOINT"] = f"{point}:1"
    server.start()
    with suppress(OSError, http.client.HTTPException):  # it may die of it
        decide(server, asleep[1], approval, decision)
    until(lambda: server.process.poll() is not None, within=60, what=f"death at {point}")
    assert server.process.returncode == -9

    lease_is_far_ahead(server)
    del server.environment["SWITCHBOARD_FAILPOINT"]
    server.start()
    ended = f"{ENDED} AND status<>'waiting'"
    until(lambda: server.column(ended), within=60, what="the run to be ended")

    run, call, amount = KILLS[decision][point]
    assert server.column(ended) == [run]
    assert server.column(f"SELECT status FROM conversations_toolcall WHERE conversation_id={of_it}") == [call]
    assert decide(server, asleep[1], approval, "approve") == 409
    assert paid(server) == ([f"c0 {amount}"] if amount else [])


def go_on(server, token, number):
    """Decide all, in every way; return what each conversation's tool should have paid."""
    approvals = server.column("SELECT id FROM conversations_approval WHERE status='pending' ORDER BY id")
    assert len(approvals) == number
    given = [list(ANSWERS)[n % len(ANSWERS)] for n in range(number)]
    assert [decide(server, token, approval, how) for approval, how in zip(approvals, given, strict=True)] == [
        200
    ] * number
    done = "SELECT 1 FROM conversations_run WHERE status='done'"
    until(lambda: len(server.column(done)) == number, within=120, what="all runs to be done")
    return Counter({"7": given.count("approve"), "70": given.count("edit")})


def judge(server, expected):
    assert Counter(line.split()[1] for line in paid(server)) == expected
    assert set(Counter(line.split()[0] for line in paid(server)).values()) == {1}


@pytest.mark.thorough
@pytest.mark.crash
def test_runs_that_wait_live_through_a_stop_and_a_kill_and_all_go_on(server, asleep):
    server.start()
    server.kill()
    server.start()

    judge(server, go_on(server, asleep[1], MANY))


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_hundred_runs_that_wait_live_through_a_stop_and_a_kill(tmp_path, database, record_property):
    if database == "postgresql":
        with running(PostgresServer()) as cluster:
            hundred(serving(tmp_path, **on_postgresql(cluster.create("hundred"))))
    else:
        hundred(serving(tmp_path))
    record_property("amount", "100 runs, SIGTERM and SIGKILL, all done, each effect once")


def hundred(server):
    token = server.start().token()
    ask(server, token, 100)
    server.terminate()
    server.start()
    server.kill()
    server.start()

    try:
        judge(server, go_on(server, token, 100))
    finally:
        server.terminate()
