"""Rows of the search index, and what a query looks for in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WORDS_TABLE = "conversations_searchword"


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One event as it is indexed. `characters`: those of runs without spaces, each alone."""

    id: int
    words: Sequence[str]
    characters: frozenset[str]
    marks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query in words of the index: each term its places, each place the words that fit there."""

    terms: Sequence[Sequence[Sequence[str]]]
    characters: Sequence[str]
    marks: Sequence[str]


def blocks_of(rows: Iterable[IndexRow], bits: int, name: str = "words") -> dict[int, set[str]]:
    """Return which words stand in which block."""
    blocks: dict[int, set[str]] = {}
    for row in rows:
        blocks.setdefault(row.id >> bits, set()).update(getattr(row, name))
    return blocks
