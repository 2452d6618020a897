"""Prove one promise for many cases inside one test: an item of pytest's for each costs more than most of the cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from django.db import transaction

from conversations.access.audit import refusal_counter
from conversations.rendering import event_renderer
from conversations.runs.approvals import auto_approval_rules
from conversations.runs.budgets import evaluate as budget_limits
from conversations.runs.policy import evaluate


def forget() -> None:
    """Forget what the process remembers of an earlier test or case: refusals counted, rules read, colours, drawings."""
    refusal_counter._windows.clear()
    evaluate.forget()
    auto_approval_rules.forget()
    budget_limits.forget()
    event_renderer.remember_hues({})
    event_renderer._cache.clear()


def for_each(cases: Iterable[tuple[Any, ...]], prove: Callable[..., object]) -> None:
    """Prove every case in a database as it was; raise one AssertionError that names each case that failed.

    For tests with `django_db`, not with `transaction=True`. No case at all is a failure, too.
    """
    count, failures = 0, []
    for count, case in enumerate(cases, 1):  # noqa: B007
        forget()
        try:
            _prove_and_undo(case, prove)
        except (Exception, pytest.fail.Exception) as error:
            failures.append((case, error))
    assert count, "no case at all"
    if failures:
        lines = [f"{case}: {type(error).__name__}: {error}" for case, error in failures]
        raise AssertionError(f"{len(lines)} of {count} cases failed\n" + "\n".join(lines)) from failures[0][1]


def _prove_and_undo(case: tuple[Any, ...], prove: Callable[..., object]) -> None:
    block = transaction.atomic()
    block._from_testcase = True  # type: ignore[attr-defined]  # as in the test's own: a durable one may be inside
    with block:
        prove(*case)
        transaction.set_rollback(True)
