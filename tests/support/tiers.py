"""How much a proof does. `make test` sets `SWITCHBOARD_TESTS=quick`: fewer rounds, no test marked `thorough`, and on
PostgreSQL the packages with SQL of their own plus the first test of each other module. Unset, as for `make test-all`
and for pytest run by hand: all of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.databases import IS_POSTGRESQL, leave_out

IS_QUICK = os.environ.get("SWITCHBOARD_TESTS") == "quick"

# Where the product's SQL differs between the databases, or leans on what only one of them does: locks, order, types.
POSTGRESQL_PACKAGES = {
    *("access", "conversation", "core", "events", "evidence", "redaction", "search", "tool_calls", "transport"),
}
ASKS = re.compile(r"django_db|[(,]\s*(?:transactional_)?db\s*[:,)]")  # the mark, or the fixture among parameters
LEFT = "left to make test-all: {{}} {}"
BEYOND = LEFT.format("beyond the first of a module without SQL of its own")


def choose(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what the quick tier runs; count the others by the reason."""
    if not IS_QUICK:
        return
    leave_out(config, items, lambda item: LEFT.format("marked thorough") if item.get_closest_marker("thorough") else "")
    if IS_POSTGRESQL:
        firsts = {item.path: item for item in reversed(items)}
        leave_out(config, items, lambda item: "" if _has_sql(config, item) or firsts[item.path] is item else BEYOND)


def is_left_out(path: Path) -> bool:
    """Return whether the quick tier on PostgreSQL need not even import a file: no test of it asks for the database."""
    return IS_QUICK and IS_POSTGRESQL and path.name.startswith("test_") and not ASKS.search(path.read_text())


def _has_sql(config: pytest.Config, item: pytest.Item) -> bool:
    return item.path.relative_to(config.rootpath / "tests").parts[0] in POSTGRESQL_PACKAGES


def rounds(quick: int, whole: int) -> int:
    """Return how many rounds, examples or kills a proof has to do."""
    return quick if IS_QUICK else whole


def variants(values: Iterable[Any], *, quick: int = 1) -> list[Any]:
    """Return parameters that prove one promise in several forms: the quick tier takes the first `quick` of them."""
    taken = list(values)
    others = [pytest.param(*(v if isinstance(v, tuple) else (v,)), marks=pytest.mark.thorough) for v in taken[quick:]]
    return [*taken[:quick], *others]
