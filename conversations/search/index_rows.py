"""Rows of the search index, and a query in the index's terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

WORDS_TABLE = "conversations_searchword"


class IndexRow(NamedTuple):
    """One event as indexed. `characters`: the single characters of scripts without spaces."""

    id: int
    words: Sequence[str]
    characters: frozenset[str]
    marks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query in the index's terms: per term its positions, per position the words that match there."""

    terms: Sequence[Sequence[Sequence[str]]]
    characters: Sequence[str]
    marks: Sequence[str]


def blocks_of(rows: Iterable[IndexRow], bits: int, name: str = "words") -> dict[int, set[str]]:
    """Return the words of each block of ids."""
    blocks: dict[int, set[str]] = {}
    for row in rows:
        blocks.setdefault(row.id >> bits, set()).update(getattr(row, name))
    return blocks
