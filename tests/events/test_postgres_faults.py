"""PostgreSQL restarted under load, with nothing flushed (`-m immediate`): judged by the publishers' own ledger."""

import os
import signal
import threading
import time

import psycopg
import pytest

from tests.events.test_crash import Ledger, Publisher, finish, judge
from tests.support.live import Server, on_postgresql, until

PUBLISHERS = 4


@pytest.fixture
def server(tmp_path, cluster, request):
    made = Server(tmp_path / "data", **on_postgresql(cluster.create(request.node.name[:60])))
    yield made
    made.kill()


def restart(cluster):
    """End PostgreSQL as a power cut would, start it again; return when it answered."""
    cluster.stop(signal.SIGQUIT)
    cluster.start()
    return time.monotonic()


def read(server, secret):
    """Ask the list of conversations; return the status."""
    return server.request("GET", "/api/v1/conversations", token=secret)[0]


def under_restarts(server, cluster, folder, times):
    """Restart PostgreSQL under load; return how many messages were acknowledged, and the seconds until all was well."""
    secret = server.start().token()
    ledger = Ledger(folder / "ledger")
    publishers = [Publisher(server, secret, ledger, i) for i in range(PUBLISHERS)]
    [publisher.start() for publisher in publishers]
    waits = []
    for n in range(1, times + 1):
        until(lambda: len(ledger.read()) >= 25 * n, within=60, what="messages")  # noqa: B023
        back = restart(cluster)
        before = len(ledger.read())
        until(lambda: len(ledger.read()) > before and read(server, secret) == 200, within=60, what="service")  # noqa: B023
        waits.append(time.monotonic() - back)
    finish(publishers, ledger)
    assert server.process.poll() is None, "the server ended"
    server.terminate()
    return judge(server, ledger), waits


@pytest.mark.thorough
def test_nothing_acknowledged_is_lost_when_postgresql_is_restarted(server, cluster, tmp_path):
    acknowledged, waits = under_restarts(server, cluster, tmp_path, 2)

    assert acknowledged > 50
    assert max(waits) < 5, waits


@pytest.mark.faults
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_in_thirty_restarts(server, cluster, tmp_path, record_property):
    acknowledged, waits = under_restarts(server, cluster, tmp_path, 30)

    record_property("amount", f"30 restarts, {acknowledged:,} acknowledged, 0 lost; back in at most {max(waits):.1f} s")
    assert acknowledged > 750
    assert max(waits) < 5, waits


@pytest.mark.thorough
def test_an_idle_server_does_not_notice_a_restart(server, cluster):
    """Its pool is full of broken connections then, and nobody is told of it."""
    secret = server.start().token()
    assert server.publish(secret, "stream:c", {"event": "log"})[0] == 201
    assert read(server, secret) == 200
    restart(cluster)

    answers = [server.publish(secret, "stream:c", {"event": "log"})[0], *(read(server, secret) for _ in range(8))]

    assert answers == [201] + [200] * 8


@pytest.mark.thorough
def test_while_postgresql_is_away_every_caller_is_told_and_then_served(server, cluster):
    secret = server.start().token()
    cluster.stop(signal.SIGQUIT)

    began = time.monotonic()
    status, answer = server.publish(secret, "stream:c", {"event": "log"})
    read_status = read(server, secret)
    took = time.monotonic() - began
    cluster.start()
    until(lambda: server.publish(secret, "stream:c", {"event": "log"})[0] == 201, within=60, what="publishing")
    until(lambda: read(server, secret) == 200, within=60, what="reading")

    assert (status, answer["error"]["code"]) == (503, "unavailable")
    assert read_status == 503
    assert took < 20


@pytest.mark.faults
def test_a_server_ends_though_postgresql_hangs_and_acknowledges_nothing_more(server, cluster, tmp_path):
    secret = server.start().token()
    assert server.publish(secret, "stream:c", {"event": "log"})[0] == 201
    with psycopg.connect(cluster.url, autocommit=True) as database:
        rows = database.execute("SELECT pid FROM pg_stat_activity WHERE application_name='switchboard'").fetchall()
    pids = [*(pid for (pid,) in rows), cluster.process.pid]
    [os.kill(pid, signal.SIGSTOP) for pid in pids]
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(server.publish(secret, "stream:c", {"event": "log"})))
    try:
        waiting.start()
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        until(lambda: server.process.poll() is not None, within=60, what="the server to end")
        took = time.monotonic() - began
        waiting.join(60)
    finally:
        [os.kill(pid, signal.SIGCONT) for pid in pids]

    assert took < 35
    assert [status for status, _ in answers if status == 201] == []
    assert "the shutdown took longer than 30 s" in server.output()
