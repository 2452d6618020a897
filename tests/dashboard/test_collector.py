"""Python's garbage collector holds up every thread of a process while it looks: no look may be a long one."""

import gc
import time

import pytest

from dashboard.cli import COLLECT


@pytest.fixture
def looks():
    """Collect the CPU seconds of each collection under the thresholds of our processes."""
    before, seconds, began = gc.get_threshold(), [], [0.0]

    def note(phase, _):
        if phase == "start":
            began[0] = time.thread_time()
        else:
            seconds.append(time.thread_time() - began[0])

    gc.collect()
    gc.freeze()
    gc.callbacks.append(note)
    gc.set_threshold(*COLLECT)
    yield seconds
    gc.set_threshold(*before)
    gc.callbacks.remove(note)
    gc.unfreeze()


def test_what_many_runs_make_is_collected_in_short_looks(looks):
    made = [[n] for n in range(450_000)]
    longest = max(looks)

    gc.collect()
    assert longest < looks[-1] / 4
    assert len(made) == 450_000
