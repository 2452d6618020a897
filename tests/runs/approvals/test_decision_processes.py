"""Eight processes decide at once, on both databases: one wins, the others learn who. And whatever it races with, the
tool of a real worker runs only for the decision that stands: judged by the file that the tool writes."""

import re
import statistics
from collections import Counter

import pytest

from tests.support.deciding import Crowd
from tests.support.live import until
from tests.support.shares import amount_of
from tests.support.tiers import rounds

AT_ONCE = 8
ANSWERS = ({"decision": "approve"}, {"decision": "reject"}, {"decision": "respond", "output": "x"})
BY = ("april", "ada")
TOLD_WITHIN = 0.2  # seconds


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def ground(request):
    nursery = request.getfixturevalue("nursery" if request.param == "sqlite" else "postgres_nursery")
    place = nursery.place()
    yield nursery, place
    nursery.clear(place)


@pytest.fixture(scope="module")
def crowd(ground):
    crowd_ = Crowd(*ground, AT_ONCE)
    crowd_.run_one("people")
    yield crowd_
    crowd_.leave()


def race(crowd, place, rounds, name):
    """Have all decide each question at once; return how long each loser waited for its answer."""
    waited = []
    for n in range(rounds):
        approval = crowd.run_one("ask", key=f"{name} {n}")
        deeds = [("decide", {"by": BY[i % 2], "approval": approval, **ANSWERS[(n + i) % 3]}) for i in range(AT_ONCE)]

        outcomes = crowd.at_once(*deeds)

        (winner,) = [outcome for outcome in outcomes if not outcome.code]
        losers = [outcome for outcome in outcomes if outcome.code]
        waited += [loser.took for loser in losers]
        by, decision = winner.answer
        words = re.compile(rf"{by} already decided: {decision}, at \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
        assert [loser.code for loser in losers] == ["already_decided"] * (AT_ONCE - 1)
        assert all(words.fullmatch(loser.message) for loser in losers), losers
        entries = f"SELECT outcome FROM conversations_auditentry WHERE verb='decide' AND target='approval:{approval}'"
        assert Counter(place.rows(entries)) == {("done",): 1, ("refused",): AT_ONCE - 1}
    where = f"JOIN conversations_conversation c ON c.id=x.conversation_id WHERE c.key LIKE '{name}%'"
    outcomes = f"SELECT count(*),count(DISTINCT c.id) FROM conversations_event x {where} AND x.kind='approval.decided'"
    assert place.rows(outcomes) == [(rounds, rounds)]
    left = f"SELECT x.status,count(*) FROM conversations_run x {where} GROUP BY x.status"
    assert place.rows(left) == [("queued", rounds)]
    return waited


@pytest.mark.slow
def test_of_eight_processes_one_decides_and_the_others_learn_who(crowd, ground):
    race(crowd, ground[1], rounds(4, 100), "a few")


@pytest.mark.faults
@pytest.mark.alone
@pytest.mark.timeout(0)
def test_of_eight_processes_one_decides_ten_thousand_times(crowd, ground, record_property):
    rounds = amount_of(10_000)

    waited = race(crowd, ground[1], rounds, "many")

    slow = statistics.quantiles(waited, n=1000)
    figures = f"p50 {slow[499] * 1e3:.0f}, p99 {slow[989] * 1e3:.0f}, most {max(waited) * 1e3:.0f} ms"
    record_property("amount", f"{rounds:,} rounds, each loser told within {figures}")
    assert max(waited) <= TOLD_WITHIN, figures


# What a decision races with → the deeds at the same moment, of an approval, its run and its conversation
ORDERS = {
    "reject": lambda ask, run, key: [("decide", {"by": "ada", "approval": ask, "decision": "reject"})],
    "cancel": lambda ask, run, key: [("cancel", {"run": run})],
    "stop": lambda ask, run, key: [("control", {"verb": "stop", "key": key})],
    "abort": lambda ask, run, key: [("control", {"verb": "abort", "key": key})],
    "expiry": lambda ask, run, key: [("expire", {"approval": ask})],
    "lost right": lambda ask, run, key: [("lose", {"name": "april"})],
}
STANDING = (
    "SELECT c.key,a.status,a.decision,r.status,t.status FROM conversations_approval a"
    " JOIN conversations_conversation c ON c.id=a.conversation_id"
    " JOIN conversations_run r ON r.id=a.run AND r.agent='Cashier' JOIN conversations_toolcall t ON t.id=a.tool_call"
)


@pytest.fixture(scope="module")
def worker(ground):
    """A worker process whose one tool asks, and then writes to a file; answers the lines of the file."""
    nursery, place = ground
    effects = place.home / "effects"
    effects.touch()
    nursery.start(place, "runagents", SWITCHBOARD_TEAMS="tests.teams.cashier", EFFECTS=str(effects))
    until(lambda: place.rows("SELECT 1 FROM conversations_agent WHERE is_entry AND name='Cashier'"), within=60)
    return lambda: effects.read_text().split("\n")[:-1]


def ask_all(crowd, place, keys):
    """Bring a run of each conversation to its question; answer approval and run by conversation."""
    for key in keys:
        crowd.run_one("say", key=key, words="Pay 7", to="agent:Cashier")
    sql = (
        "SELECT c.key,a.id,a.run FROM conversations_approval a JOIN conversations_conversation c"
        " ON c.id=a.conversation_id WHERE a.status='pending'"
    )

    def pending():
        """Return the requests of these conversations once each has one: earlier races may have left others."""
        requests = {key: (approval, run) for key, approval, run in place.rows(sql)}
        return requests if requests.keys() >= set(keys) else None

    return until(pending, within=60, what="the questions")


def upset(crowd, place, rounds):
    """Race an approval with each of these orders; answer by order how often each outcome came."""
    keys = [f"{order} {rounds}.{n}" for n in range(rounds) for order in ORDERS]
    approvals = ask_all(crowd, place, keys)
    for key in keys:
        approval, run = approvals[key]
        approve = ("decide", {"by": "april", "approval": approval, "decision": "approve"})
        deeds = [approve, *ORDERS[key.rpartition(" ")[0]](approval, run, key)]
        crowd.at_once(*(deeds if hash((key, rounds)) % 2 else reversed(deeds)))
        (after,) = crowd.at_once(approve)
        assert after.code in ("already_decided", "cancelled", "expired", "not_allowed"), after
        crowd.run_one("regain", name="april")
    busy = "SELECT 1 FROM conversations_run WHERE agent='Cashier' AND status IN ('queued','running')"
    until(lambda: not place.rows(busy), within=60, what="all runs to be over")
    return place.rows(STANDING)


def judge(rows, effects):
    """The tool ran once for each approval that stands, and for nothing else; return how often each came of each."""
    ran = Counter(line.rpartition(" ")[0] for line in effects)
    came = Counter()
    for key, approval, decision, run, call in rows:
        came[key.rpartition(" ")[0], decision or approval] += 1
        if (approval, decision, run) == ("decided", "approve", "done"):
            assert (ran[key], call) == (1, "done"), key
        elif (approval, decision) == ("decided", "approve"):  # ended after it was approved
            assert (run, call) in {("cancelled", "blocked"), ("cancelled", "unknown"), ("cancelled", "done")}, key
            assert ran[key] in {"blocked": {0}, "unknown": {0, 1}, "done": {1}}[call], key
        else:
            assert (ran[key], call) in {(0, "rejected"), (0, "blocked"), (0, "waiting")}, (key, call)
    assert sum(ran.values()) == len(effects) == sum(1 for _ in filter(None, effects))
    return came


@pytest.mark.thorough
@pytest.mark.parametrize("ground", ["sqlite", pytest.param("postgresql", marks=pytest.mark.faults)], indirect=True)
def test_no_tool_runs_after_a_reject_an_end_an_expiry_or_a_lost_right(crowd, ground, worker):
    judge(upset(crowd, ground[1], 2), worker())


@pytest.mark.faults
@pytest.mark.timeout(0)
def test_no_tool_runs_after_any_of_them_in_a_thousand_races(crowd, ground, worker, record_property):
    came = judge(upset(crowd, ground[1], amount_of(1000) // len(ORDERS)), worker())

    record_property("amount", ", ".join(f"{order}: {n} {what}" for (order, what), n in sorted(came.items())))
