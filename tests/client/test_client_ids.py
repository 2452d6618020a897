"""Ids of our own making."""

import os
import random
import subprocess
import sys
import time
import uuid

import pytest

from switchboard import new_id


def test_ids_are_uuids_of_version_7_and_their_order_is_that_of_time() -> None:
    made = []
    for _ in range(50):
        made.append(new_id())
        before = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 == before:
            pass

    assert made == sorted(made)
    assert {(uuid.UUID(made_id).version, uuid.UUID(made_id).variant) for made_id in made} == {(7, uuid.RFC_4122)}


def test_ids_of_one_moment_differ() -> None:
    assert len({new_id() for _ in range(10_000)}) == 10_000


def test_a_programs_own_seed_repeats_no_ids() -> None:
    made = []
    for _ in range(2):
        random.seed(1)
        made.append(new_id()[-17:])

    assert made[0] != made[1]


FORKING = """
import os
from switchboard import new_id
if child := os.fork():
    os.waitpid(child, 0)
print(new_id()[-17:], flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_makes_ids_of_its_own() -> None:
    made = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True).stdout.split()

    assert len(set(made)) == 2
