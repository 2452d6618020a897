"""Eight processes decide the same question at once at one real server on SQLite: one wins, the others learn who, soon.

`test_decision_processes` has eight that write to the database themselves.
"""

import json
import statistics
import subprocess
import sys
from collections import Counter

import pytest

from tests.support.live import ROOT, Server
from tests.support.shares import amount_of

AT_ONCE = 8
TOLD_WITHIN = 0.2  # seconds
PEOPLE = ("april", "ada")
CLIENT = """
import http.client, json, sys, time
port, token, decision = int(sys.argv[1]), sys.argv[2], sys.argv[3]
server = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
for line in sys.stdin:
    began = time.perf_counter()
    server.request("POST", f"/api/v1/approvals/{line.strip()}/decision", json.dumps({"decision": decision}), head)
    answer = server.getresponse()
    told = json.loads(answer.read())
    print(json.dumps([answer.status, time.perf_counter() - began, told]), flush=True)
"""
ASKING = """
from conversations.models import User
from tests.support import teamwork as t
o = User.objects.filter(username="owner").first()
t.team()
for n in range({rounds}): t.ask(o, f"race-{{n}}", approval_id=f"race-{{n}}")
"""


@pytest.fixture
def served(tmp_path):
    server = Server(tmp_path / "data", SWITCHBOARD_TEAMS="").start()
    yield server
    server.terminate()


@pytest.fixture
def crowd(served):
    """Processes that each decide what they are sent."""
    tokens = [served.token(name, "approver") for name in PEOPLE]
    ways = [(tokens[n % 2], ("approve", "reject")[n // 2 % 2]) for n in range(AT_ONCE)]
    command = [sys.executable, "-c", CLIENT, str(served.port)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    made = [subprocess.Popen([*command, *way], **pipes) for way in ways]
    yield made
    for process in made:
        process.communicate()


def race(served, crowd, rounds):
    """Have all decide each question at once; return how long each loser waited."""
    served.command("shell", "--no-imports", "-c", ASKING.format(rounds=rounds))
    waited = []
    for n in range(rounds):
        for process in crowd:
            process.stdin.write(f"race-{n}\n")
        for process in crowd:
            process.stdin.flush()

        results = [json.loads(process.stdout.readline()) for process in crowd]

        (winner,) = [answer for status, _, answer in results if status == 200]
        losers = [(took, answer["error"]) for status, took, answer in results if status == 409]
        assert len(losers) == AT_ONCE - 1, results
        waited += [took for took, _ in losers]
        for _, error in losers:
            assert error["code"] == "already_decided"
            assert (error["by"], error["decision"], error["at"]) == (winner["by"], winner["decision"], winner["at"])
    entries = served.rows(
        "SELECT target, outcome, COUNT(*) FROM conversations_auditentry WHERE verb='decide' GROUP BY 1, 2"
    )
    assert Counter(entries) == Counter(
        [(f"approval:race-{n}", outcome, count) for n in range(rounds) for outcome, count in OUTCOMES]
    )
    return waited


OUTCOMES = (("done", 1), ("refused", AT_ONCE - 1))


@pytest.mark.thorough
def test_of_eight_clients_one_decides_and_the_others_learn_who(served, crowd):
    race(served, crowd, 20)


@pytest.mark.faults
@pytest.mark.alone
@pytest.mark.timeout(0)
def test_of_eight_clients_one_decides_ten_thousand_times(served, crowd, record_property):
    rounds = amount_of(10_000)

    waited = race(served, crowd, rounds)

    slow = statistics.quantiles(waited, n=1000)
    figures = f"p50 {slow[499] * 1e3:.0f}, p99 {slow[989] * 1e3:.0f}, most {max(waited) * 1e3:.0f} ms"
    record_property("amount", f"{rounds:,} rounds, each loser told within {figures}")
    assert max(waited) <= TOLD_WITHIN, figures
