"""Filters of the audit log → SQL: each one as a test of an entry, and those with an index also as ways to walk."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from django.db import connection

from conversations.auditlog import filters as reading
from conversations.auditlog import window
from conversations.auditlog.filters import BEGINNING, Filters
from conversations.models import AuditHead
from conversations.toolcalls.conditions import Test

END = 2**62  # above every entry
HOLDS = {"sqlite": "instr(t.correlation,%s)>0", "postgresql": "strpos(t.correlation,%s)>0"}


class Way(NamedTuple):
    """How to find entries: each branch is a part of one index, in the order of the list by `seq`.

    `(t.seq+0)` is what the indexes of one column have, so that no walk along them can become one along the key.
    """

    field: str
    branches: tuple[Test, ...]
    seq: str = "(t.seq+0)"

    def between(self, above: int, below: int) -> Test:
        """Test that an entry lies between two, neither included."""
        return Test(f"{self.seq}>%s AND {self.seq}<%s", (above, below))


EVERY = Way("", (Test("1=1"),), "t.seq")


class Conditions(NamedTuple):
    """What an entry must fulfil: to lie between two seqs, neither included; `tests`, by their filter's name; `words`,
    that its reason holds each."""

    above: int
    below: int
    tests: dict[str, Test]
    ways: list[Way]
    words: list[str]

    def rest(self, way: Way) -> list[Test]:
        """Answer what walking this way does not see to."""
        return [test for name, test in self.tests.items() if name != way.field]


def of(filters: Filters, before: int | None = None) -> Conditions:
    """Make the conditions of these filters, for entries below `before`."""
    head = AuditHead.objects.filter(id=1).values_list("seq", flat=True).first() or 0
    since, until = filters.begins(reading.now()), filters.until
    above = window.floor(head, since) if since is not None else 0
    below = window.ceiling(head, until) if until is not None else END
    tests = dict(_tests(filters, since))
    return Conditions(above, min(below, END if before is None else before), tests, list(_ways(filters)), filters.words)


def _ways(filters: Filters) -> Iterator[Way]:
    """Answer the ways there are, the one that is mostly rarest first."""
    for field, column, values in (("target", "target", (filters.target,)), ("who", "principal", filters.who)):
        if any(values) and not any(value.endswith(BEGINNING) for value in values):
            yield Way(field, tuple(Test(f"t.{column}=%s", (value,)) for value in values))


def _tests(filters: Filters, since: int | None) -> Iterator[tuple[str, Test]]:
    columns = {"who": "principal", "acting_as": "acting_as", "verb": "verb"}
    for field, column in columns.items():
        if values := getattr(filters, field):
            yield field, _among(column, values)
    if filters.target:
        yield "target", _among("target", (filters.target,))
    if filters.conversation:
        yield "conversation", _about(filters.conversation)
    if filters.outcome:
        yield "outcome", Test("t.outcome=%s", (filters.outcome,))
    if since is not None:
        yield "since", Test("t.at>=%s", (since,))
    if filters.until is not None:
        yield "until", Test("t.at<=%s", (filters.until,))


def _among(column: str, values: Sequence[str]) -> Test:
    """Test a column in a form that no index serves: the walk is along the way that was chosen, and no other."""
    parts, said = [], []
    for value in values:
        start = value.removesuffix(BEGINNING)
        if start == value:
            parts.append(f"t.{column}||''=%s")
            said.append(value)
        elif start:
            parts.append(f"substr(t.{column},1,{len(start)})=%s")
            said.append(start)
        else:
            parts.append(f"t.{column}||''<>''")  # anything at all
    return Test(f"({' OR '.join(parts)})", tuple(said))


def _about(conversation: str) -> Test:
    """Test that an entry is about a conversation: its target, or told in its correlation."""
    target = _among("target", (f"conversation:{conversation}",))
    start = conversation.removesuffix(BEGINNING)
    told = f'"conversation":{json.dumps(start, ensure_ascii=False)}'  # as `audit` writes it
    told = told if start == conversation else told[:-1]
    return Test(f"({target.sql} OR {HOLDS[connection.vendor]})", (*target.values, told))
