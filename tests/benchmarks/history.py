"""`history`: a page of a conversation of 100,000 events at its tail, in its middle and at its beginning.

Target: p99 anywhere at most 1.5 times the p99 at the tail.
"""

import time

from tests.benchmarks import common

common.set_up()

from conversations.events import log
from tests.benchmarks.seed import fill, message

EVENTS = 100_000
ROUNDS = 400


def main() -> None:
    """Read pages at random places near three depths, interleaved."""
    fill(message("long", i) for i in range(EVENTS))
    places = {"tail": EVENTS, "middle": EVENTS // 2, "beginning": 1_000}
    waits: dict[str, list[float]] = {name: [] for name in places}
    for round_ in range(ROUNDS):
        for name, seq in places.items():
            start = time.perf_counter()
            page = log.page_before("long", seq - round_ % 100)
            waits[name].append((time.perf_counter() - start) * 1000)
            assert len(page.events) == 60
    p99 = {name: common.percentile(some, 0.99) for name, some in waits.items()}
    worst = max(p99.values()) / p99["tail"]
    common.report(
        "history", ratio=worst, target="p99 at any depth <= 1.5 of the tail's", met=worst <= 1.5,
        p99_ms={name: round(ms, 2) for name, ms in p99.items()},
        p50_ms={name: round(common.median(some), 2) for name, some in waits.items()}, events=EVENTS,
    )  # fmt: skip


if __name__ == "__main__":
    main()
    common.tear_down()
