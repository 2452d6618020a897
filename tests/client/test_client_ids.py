"""Ids of our own making."""

import time
import uuid

from switchboard import new_id


def test_ids_are_uuids_of_version_7_and_their_order_is_that_of_time() -> None:
    made = []
    for _ in range(50):
        made.append(new_id())
        before = time.time_ns() // 1_000_000
        while time.time_ns() // 1_000_000 == before:
            pass

    assert made == sorted(made)
    assert {(uuid.UUID(one).version, uuid.UUID(one).variant) for one in made} == {(7, uuid.RFC_4122)}


def test_ids_of_one_moment_differ() -> None:
    assert len({new_id() for _ in range(10_000)}) == 10_000
