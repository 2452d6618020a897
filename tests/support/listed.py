"""Filtered lists read to their end: page by page, and as files."""

import csv
import io
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from django.http import QueryDict

from conversations.access.list_export import ListExport
from conversations.listing import file_export
from conversations.listing.file_export import Form
from conversations.listing.page import WALK, ListPage
from conversations.listing.url_filters import UrlFilters
from tests.support.tiers import rounds

Filters = TypeVar("Filters", bound=UrlFilters)

MAX_PAGES = 5_000
DRAWN = rounds(25, 100)  # filters whose addresses are read again


def read_filters(kind: type[Filters], query: str) -> Filters:
    """Read an address's query."""
    return kind.parse_strict(dict(QueryDict(query).lists()))


def every_row(
    newest: Callable[..., ListPage[Any, Any]], filters: UrlFilters, *, limit: int = 50, walk: int = WALK
) -> list[Any]:
    """Return the rows of all pages."""
    rows, place = [], None
    for _ in range(MAX_PAGES):
        page = newest(filters, before=place, limit=limit, walk=walk)
        rows += page.items
        place = page.after
        if place is None:
            return rows
    raise AssertionError("the pages never end")


def assert_filters_match(
    find: Callable[..., list[Any]], draw: Callable[[random.Random], UrlFilters], brute: Callable[..., list[Any]],
    dice: random.Random, *, count: int, limit: int, walks: list[int], least: int,
) -> None:  # fmt: skip
    """Check that drawn filters find what a look at every row finds; at least `least` of them some, and `least` none."""
    kinds = Counter[bool]()
    for _ in range(count):
        filters = draw(dice)
        wanted = brute(filters)
        kinds[bool(wanted)] += 1

        assert find(filters) == wanted, filters
        assert find(filters, limit=limit, walk=dice.choice(walks)) == wanted, filters  # cut short, and gone on
    assert min(kinds[True], kinds[False]) >= least, kinds


def assert_addresses_say_the_same(draw: Callable[[random.Random], UrlFilters], seed: int) -> None:
    """Check that drawn filters are read from their own addresses again."""
    dice = random.Random(seed)
    for filters in itertools.islice(iter(lambda: draw(dice), None), DRAWN):
        assert read_filters(type(filters), filters.query) == filters


def pieces(read: Callable[[Any], tuple[Any, Any]]) -> Iterator[Any]:
    """Read page after page of an export."""
    place, is_first = None, True
    while place is not None or is_first:
        piece, place = read(place)
        is_first = False
        yield piece


def exported(export: ListExport[Any, Any], filters: UrlFilters, form: Form) -> str:
    """Return a file, put together as the page does."""
    return b"".join((export.head(form), *pieces(export.pieces(filters, form)))).decode()


def table(export: ListExport[Any, Any], filters: UrlFilters) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    return list(csv.DictReader(io.StringIO(exported(export, filters, "csv"), newline="")))


def assert_plain(texts: Iterable[str]) -> None:
    """Check that no cell is a formula, or has what the eye cannot see."""
    for text in texts:
        assert not text.lstrip().startswith(file_export.FORMULAS), text
        assert not any((ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u200b" for c in text), text
