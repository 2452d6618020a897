"""Python's garbage collector holds up every thread of a process while it looks: no look may be a long one."""

import gc

import pytest

from dashboard.cli import COLLECT

MOST = 15_000  # objects; some 10 ms on a slow machine


@pytest.fixture
def looks():
    """Collect how many objects each collection looks at under the thresholds of our processes."""
    before, sizes = gc.get_threshold(), []

    def note(phase, facts):
        if phase == "start":
            sizes.append(sum(len(gc.get_objects(generation)) for generation in range(facts["generation"] + 1)))

    gc.collect()
    gc.freeze()
    gc.callbacks.append(note)
    gc.set_threshold(*COLLECT)
    yield sizes
    gc.set_threshold(*before)
    gc.callbacks.remove(note)
    gc.unfreeze()


@pytest.mark.slow
def test_what_many_runs_make_is_collected_in_short_looks(looks):
    made = [[n] for n in range(450_000)]

    assert max(looks) <= MOST
    assert len(looks) >= len(made) / MOST
