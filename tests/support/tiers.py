"""How much a proof does: `SWITCHBOARD_TESTS` names the tier. CI runs `quick` and then `slow`.

`quick`, by `make test`: fewer rounds, no test marked `slow` or `thorough`; on PostgreSQL what has SQL of its own, each
test in its first form, and a first test of the rest: `WHOLE`, `FIRST_FORMS`.
`slow`, by `make test-slow`: with as few rounds, the tests marked `slow`; on PostgreSQL the other forms of `WHOLE`.
Unset, as for `make test-all` and for pytest run by hand: all tests, with all rounds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.databases import IS_POSTGRESQL, leave_out

T = TypeVar("T")
TIER = os.environ.get("SWITCHBOARD_TESTS", "")
IS_SHORT = TIER in ("quick", "slow")

# Where the product's SQL differs between the databases, or leans on what only one of them does: locks, order, types.
WHOLE = {"core", "events", "redaction", "search", "tool_calls", "transport"}
# Where some of it does: every test in its first form. A test marked `each_form` has them all, one marked `any_database`
# has none.
FIRST_FORMS = {"access", "conversation", "evidence"}
# Of these the modules whose SQL is that of others, above or in `runs`, whose tests have theirs: the first test of each.
WITHOUT_SQL = {
    *("test_answered", "test_compare", "test_control", "test_control_runs", "test_deeds", "test_deliveries"),
    *("test_prospects", "test_since_left", "test_speaking"),
}
ASKS = re.compile(r"django_db|[(,]\s*(?:transactional_)?db\s*[:,)]")  # the mark, or the fixture among parameters
LEFT = "left to make test-all: {{}} {}"
SAME = LEFT.format("that any database serves alike")
BEYOND = LEFT.format("beyond the first of a module or of a test's forms, without SQL of their own")
SLOW = "left to make test-slow: {} marked slow"
FURTHER = "left to make test-slow: {} further forms"
QUICK = "left to make test: {} quick"


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what the tier runs; count the others by the reason."""
    if not IS_SHORT:
        return
    leave_out(config, items, lambda item: LEFT.format("marked thorough") if item.get_closest_marker("thorough") else "")
    if IS_POSTGRESQL:
        leave_out(config, items, lambda item: SAME if item.get_closest_marker("any_database") else "")
        firsts = {_alike(config, item): item for item in reversed(items)}
        leave_out(config, items, lambda item: "" if firsts[_alike(config, item)] is item else BEYOND)
    firsts = {_first_form(item): item for item in reversed(items)}
    why_not = {item: _why_not_quick(item, firsts) for item in items}
    if TIER == "quick":
        leave_out(config, items, lambda item: why_not[item])
    else:
        leave_out(config, items, lambda item: "" if why_not[item] else QUICK)


def _why_not_quick(item: pytest.Item, firsts: dict[str, pytest.Item]) -> str:
    if item.get_closest_marker("slow"):
        return SLOW
    return "" if firsts[_first_form(item)] is item else FURTHER


def _first_form(item: pytest.Item) -> str:
    """Return a name that the forms of a test share, where the quick tier takes the first of them: on PostgreSQL."""
    has_one = not IS_POSTGRESQL or item.get_closest_marker("each_form")
    return item.nodeid if has_one else item.nodeid.partition("[")[0]


def is_left_out(path: Path) -> bool:
    """Return whether a short tier on PostgreSQL need not even import a file: no test of it asks for the database."""
    return IS_SHORT and IS_POSTGRESQL and path.name.startswith("test_") and not ASKS.search(path.read_text())


def _alike(config: pytest.Config, item: pytest.Item) -> str:
    """Return a name that a test shares with those which tell PostgreSQL nothing more."""
    package = item.path.relative_to(config.rootpath / "tests").parts[0]
    if package in WHOLE or item.get_closest_marker("each_form"):
        return item.nodeid
    has_forms = package in FIRST_FORMS and item.path.stem not in WITHOUT_SQL
    return item.nodeid.partition("[")[0] if has_forms else str(item.path)


def rounds(quick: int, whole: int) -> int:
    """Return how many rounds, examples or kills a proof has to do: `quick` in both short tiers."""
    return quick if IS_SHORT else whole


def variants(values: Iterable[Any], *, quick: int = 1) -> list[Any]:
    """Return parameters that prove one promise in several forms: the quick tier takes the first `quick` of them."""
    taken = list(values)
    others = [pytest.param(*(v if isinstance(v, tuple) else (v,)), marks=pytest.mark.thorough) for v in taken[quick:]]
    return [*taken[:quick], *others]


def sampled(cases: Iterable[T], *, one_of: int) -> list[T]:
    """Return the cases of a grid or of recordings: the quick tier takes one of so many, from the first on."""
    return list(cases)[:: one_of if IS_SHORT else 1]
