"""`bus`: from `publish` to a reader that waits in `read_blocking`, LogBus against Redis Streams, 250 messages a second.

All in one process, a reader in a thread of its own, interleaved. LogBus has each message on disk before it answers, so
Redis is measured twice: with every write synced as well (`appendfsync always`), and with nothing on disk at all.
Target: p50 at most that of Redis, like for like; the other is said.
"""

import threading
import time
from collections.abc import Callable

from switchboard import Bus, BusMessage, RedisBus
from tests.benchmarks import common
from tests.support.services import RedisServer, running

RATE = 250.0  # messages a second
N = 1000
ROUNDS = 3
SYNCED = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")


def waits(bus: Bus, topic: str, message: Callable[[str, int], BusMessage]) -> list[float]:
    """Publish at the rate; return how long each message took to its reader, in ms."""
    sent: dict[str, float] = {}
    got: dict[str, float] = {}
    first = message(topic, 0)
    last_id = bus.publish(topic, first)

    def read() -> None:
        after = last_id
        while len(got) < N:
            for read in bus.read_blocking(topic, after, 100, 2000):
                got[read.id], after = time.perf_counter(), read.id

    reader = threading.Thread(target=read)
    reader.start()
    start = time.perf_counter()
    for i in range(1, N + 1):
        time.sleep(max(0.0, start + i / RATE - time.perf_counter()))
        bus_message = message(topic, i)
        sent[bus_message.id] = time.perf_counter()
        bus.publish(topic, bus_message)
    reader.join(30)
    assert sent.keys() == got.keys(), f"{len(got)} of {N} arrived"
    return [(got[key] - at) * 1000 for key, at in sent.items()]


def main() -> None:
    """Interleave both."""
    common.set_up()
    from conversations.core import principals
    from conversations.transport.log_bus import LogBus

    def message(topic: str, i: int) -> BusMessage:
        payload = {"type": "message", "sender": "agent:A", "recipient": "agent:B", "content": f"number {i}"}
        return BusMessage(topic=topic, payload={"conversation_id": topic.removeprefix("chat:"), **payload})

    got: dict[str, list[float]] = {}
    with running(RedisServer()) as memory, running(RedisServer(*SYNCED)) as synced:
        assert isinstance(memory, RedisServer)
        assert isinstance(synced, RedisServer)
        buses = {"ours": LogBus(principals.SYSTEM), "memory": RedisBus(memory.url), "synced": RedisBus(synced.url)}
        for round_ in range(ROUNDS):
            for name, bus in buses.items():
                got.setdefault(name, []).extend(waits(bus, f"chat:b{round_}", message))
    p50, p99 = ({name: common.percentile(some, q) for name, some in got.items()} for q in (0.5, 0.99))
    ratio = p50["ours"] / p50["synced"]
    figures = {f"{name}_p50_ms": round(p50[name], 3) for name in got} | {f"{n}_p99_ms": round(p99[n], 2) for n in got}
    common.report(
        "bus", ratio=ratio, target="p50 <= that of Redis Streams, both synced", met=ratio <= 1,
        of_redis_in_memory=round(p50["ours"] / p50["memory"], 2), **figures, rounds=ROUNDS, rate=RATE,
    )  # fmt: skip


if __name__ == "__main__":
    main()
    common.tear_down()
