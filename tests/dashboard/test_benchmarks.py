"""What benchmarks leave behind when they are killed is removed by the next one."""

import subprocess
import sys
import tempfile

from tests.support.live import ROOT

LEAVE = """
import os
from tests.benchmarks import common
print(common.HOME, flush=True)
os.kill(os.getpid(), 9)
"""


def test_the_folder_of_a_killed_benchmark_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    for _ in range(2):
        subprocess.run([sys.executable, "-c", LEAVE], cwd=ROOT, check=False, capture_output=True)

    assert len(list(tmp_path.iterdir())) == 1


def test_the_folder_of_a_running_benchmark_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    from tests.benchmarks import common

    mine, other = common.scratch(), common.scratch()

    assert mine.exists()
    assert other.exists()
