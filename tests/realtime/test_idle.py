"""A server that nobody looks at leaves the machine alone."""

import os
import time
from pathlib import Path

import pytest

from tests.support.live import Server, until

SETTLED_S, MEASURED_S = 15.0, 180.0
MOST = 0.007  # of a core
MOST_STATEMENTS = 6.0  # a second; what every five seconds is looked at and written down takes four and a half
SERVE = """
from django.conf import settings
from django.core.management import call_command
from django.db.backends.utils import CursorWrapper

execute, count = CursorWrapper.execute, open(settings.DATA_DIR / "statements", "ab", buffering=0)

def counted(cursor, sql, params=None):
    count.write(b".")
    return execute(cursor, sql, params)

CursorWrapper.execute = counted
call_command("serve", port=%s)
"""


class CountedServer(Server):
    """A server that writes down that it asks its database something."""

    def spawn(self, arguments, stdout, stderr, stdin=os.devnull):
        if arguments[0] == "serve":
            arguments = ["shell", "--no-imports", "-c", SERVE % self.port]
        return super().spawn(arguments, stdout, stderr, stdin)

    @property
    def statements(self) -> int:
        """How many statements there were."""
        return (self.data_dir / "statements").stat().st_size


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


@pytest.mark.faults
@pytest.mark.alone
@pytest.mark.timeout(400)
def test_a_server_without_viewers_takes_hardly_any_cpu() -> None:
    server = CountedServer().start()
    began = time.monotonic()
    until(lambda: time.monotonic() - began > SETTLED_S, within=SETTLED_S + 5, what="the start to be over")
    before, asked_before = cpu_of(server.process.pid), server.statements
    until(lambda: time.monotonic() - began > SETTLED_S + MEASURED_S, within=MEASURED_S + 5, what="the minutes to pass")

    took, statements = cpu_of(server.process.pid) - before, server.statements - asked_before
    server.terminate()

    assert statements / MEASURED_S < MOST_STATEMENTS
    assert took / MEASURED_S < MOST
