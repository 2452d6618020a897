"""What the intake remembers stays bounded, and costs the same once it is full."""

import time

import pytest

from conversations.telemetry import intake

BLOCK = 1_000
MOST_TIMES = (
    10  # that a block may cost when the memory is full; looking for the oldest one by one took 50 times and more
)


def block(number):
    return [(f"c{n % 50}", f"{number * BLOCK + n:032x}") for n in range(BLOCK)]


def median_cost_of(memory, numbers):
    """Return the CPU seconds that a block takes."""
    costs = []
    for number in numbers:
        steps = block(number)
        began = time.thread_time()
        memory.note_stored("", steps)
        costs.append(time.thread_time() - began)
    return sorted(costs)[len(costs) // 2]


@pytest.mark.slow
def test_a_full_memory_of_events_costs_no_more_than_an_empty_one():
    memory, blocks = intake.Memory(), intake.MAX_STORED // BLOCK

    at_first = median_cost_of(memory, range(blocks // 2))
    for number in range(blocks // 2, blocks * 3):
        memory.note_stored("", block(number))
    full = median_cost_of(memory, range(blocks * 3, blocks * 3 + blocks // 2))

    assert full < at_first * MOST_TIMES


def test_the_newest_events_are_known_and_the_oldest_forgotten():
    memory, blocks = intake.Memory(), intake.MAX_STORED // BLOCK

    for number in range(blocks * 3):
        memory.note_stored("", block(number))

    assert all(memory.is_stored("", step) for step in block(blocks * 3 - 1))
    assert not any(memory.is_stored("", step) for step in block(0))


def test_the_trace_used_last_is_kept():
    memory = intake.Memory()
    memory.trace("", "first").conversation = "kept"
    memory.trace("", "second").conversation = "gone"

    for number in range(intake.MAX_TRACES - 1):
        memory.trace("", "first")
        memory.trace("", f"{number:032x}")

    assert (memory.trace("", "first").conversation, memory.trace("", "second").conversation) == ("kept", "")
