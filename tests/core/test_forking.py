"""The nursery of a test run's servers: one for all its processes, which ends what each of them left."""

import os
from pathlib import Path

from tests.support import forking
from tests.support.live import ROOT, until

IDLE = "import os, time; print(os.getppid(), flush=True); time.sleep(600)"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_processes_of_a_run_share_a_nursery_which_ends_what_each_of_them_left(tmp_path: Path) -> None:
    first = forking.nursery(ROOT)
    path = forking._path_of("product")
    assert path is not None
    second = forking.Nursery(ROOT, "no module: it runs already", path=path)
    logs = tmp_path / "first", tmp_path / "second"
    first_child, second_child = (
        nursery.fork(["-c", IDLE], env=os.environ, stdout=log, stderr=log)
        for nursery, log in zip((first, second), logs, strict=True)
    )
    try:
        parents = {int(until(lambda log=log: log.exists() and log.read_text(), what="its line")) for log in logs}
        assert len(parents) == 1
        assert os.getpid() not in parents
        second.close()
        until(lambda: not is_alive(second_child.pid), what="the end of what the second left")
        assert is_alive(first_child.pid)
        assert first_child.poll() is None
    finally:
        first_child.kill()
    assert first_child.wait(60) == -9
