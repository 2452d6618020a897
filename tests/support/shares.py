"""Long proofs in parts: `FAULTS_SHARE=2/5 make faults` does the second fifth of each; unset, all of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def which() -> tuple[int, int]:
    """Return which share it is, from 0 on, and of how many."""
    number, _, of = os.environ.get("FAULTS_SHARE", "1/1").partition("/")
    assert 1 <= int(number) <= int(of), "FAULTS_SHARE is like 2/5: the second of five shares"
    return int(number) - 1, int(of)


def share_of(some: Sequence[T]) -> list[T]:
    """Return every n-th of these, so that all shares together are all of them."""
    number, of = which()
    return list(some[number::of])


def amount_of(whole: int) -> int:
    """Return how much of a number a share has to do: all together do no less."""
    return -(-whole // which()[1])


def seed() -> int:
    """Return a number of this share's own, so that no two do the same."""
    return which()[0]
