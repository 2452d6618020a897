"""Agents that publish over `HttpBus` are killed, and so is their server: what was acknowledged is stored once."""

import threading
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from switchboard import HttpBus, watch
from tests.client.test_client_http import publish, stored
from tests.support import programs
from tests.support.cutting_proxy import CuttingProxy
from tests.support.live import Server, until

AGENT = """
import sys
from switchboard import BusMessage, HttpBus
url, token, folder, topic = sys.argv[1:]
bus = HttpBus(url, token, spool_dir=folder, timeout_s=2)
for n in range(1_000_000):
    payload = {"event": "log", "conversation_id": topic[5:], "n": n}
    print(bus.publish(topic, BusMessage(topic, payload)), flush=True)
"""


def killed_agent(proxy: CuttingProxy, token: str, topic: str, spool: Path, after: int) -> list[str]:
    """Let an agent publish in its own process, kill it after so many acknowledgements; return the ids it was told."""
    with programs.printing(["-c", AGENT, proxy.url, token, str(spool), topic]) as (agent, output):
        lines = [output.readline().strip() for _ in range(after)]
        agent.kill()
        return lines + output.read().split("\n")[:-1]


@pytest.mark.crash
@pytest.mark.parametrize("state", ["there", "cutting", "away"])
def test_what_a_killed_agent_was_told_is_safe_is_stored_once_and_in_order(
    proxy: CuttingProxy, served: Server, served_token: str, topic: str, tmp_path: Path, state: str
) -> None:
    proxy.be(state)  # type: ignore[arg-type]
    lines = killed_agent(proxy, served_token, topic, tmp_path, 40)

    proxy.be("there")
    with HttpBus(proxy.url, served_token, spool_dir=tmp_path) as heir:
        assert heir.flush(20)

    there = stored(served, topic)
    assert there[: len(lines)] == lines
    assert len(there) - len(lines) <= 1  # the one it was not told of
    assert len(set(there)) == len(there)


@pytest.mark.faults
def test_agent_killed_again_and_again_loses_and_doubles_nothing(
    proxy: CuttingProxy,
    served: Server,
    served_token: str,
    topic: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    random = Random(7)
    lines: list[str] = []
    for _ in range(60):
        proxy.be(random.choice(["there", "cutting", "hanging", "away"]))
        lines += killed_agent(proxy, served_token, topic, tmp_path, random.randrange(1, 60))

    proxy.be("there")
    with HttpBus(proxy.url, served_token, spool_dir=tmp_path) as heir:
        assert heir.flush(60)

    there = stored(served, topic)
    record_property("amount", f"60 kills, {len(lines):,} told, {len(there):,} stored")
    assert [id_ for id_ in there if id_ in set(lines)] == lines
    assert len(there) - len(lines) <= 60
    assert len(set(there)) == len(there)


@pytest.mark.slow
@pytest.mark.crash
def test_agents_and_watchers_live_through_a_kill_of_the_server(tmp_path: Path) -> None:
    server = Server(tmp_path / "data").start()
    topic, published, seen = "chat:c1", dict[int, list[str]](), list[str]()
    with HttpBus(server.url, server.token(), spool_dir=tmp_path / "spool", timeout_s=5) as bus:
        first = publish(bus, topic, 0)[0]
        watcher = threading.Thread(
            target=lambda: seen.extend(got.id for got in islice(watch(topic, after=first, bus=bus), 400))
        )
        agents = [
            threading.Thread(target=lambda n=n: published.update({n: publish(bus, topic, *range(100))}))
            for n in range(4)
        ]
        for thread in (watcher, *agents):
            thread.start()
        until(lambda: len(stored(server, topic)) > 40, what="some to be stored")
        server.kill()
        for thread in agents:
            thread.join(60)
        server.start()
        assert bus.flush(30)
        watcher.join(60)

    there = stored(server, topic)
    server.terminate()
    assert len(there) == len(set(there)) == 401
    assert seen == there[1:]
    assert all([id_ for id_ in there if id_ in set(ids)] == ids for ids in published.values())
