"""A server that nobody looks at leaves the machine alone."""

import time
from pathlib import Path

import pytest

from tests.support.live import Server, until

SETTLED_S, MEASURED_S = 15.0, 60.0
MOST = 0.012  # of a core, on a busy machine; alone it takes a little more than half of that


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


@pytest.mark.faults
@pytest.mark.timeout(300)
def test_a_server_without_viewers_takes_hardly_any_cpu() -> None:
    server = Server().start()
    began = time.monotonic()
    until(lambda: time.monotonic() - began > SETTLED_S, within=SETTLED_S + 5, what="the start to be over")
    before = cpu_of(server.process.pid)
    until(lambda: time.monotonic() - began > SETTLED_S + MEASURED_S, within=MEASURED_S + 5, what="the minute to pass")

    took = cpu_of(server.process.pid) - before
    server.terminate()

    assert took / MEASURED_S < MOST
