"""Filters of the audit log as SQL: each as a condition on an entry, and those with an index also as scans."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from django.db import connection
from django.db.models import Max, Min

from conversations.access.audit.listing.filters import BEGINNING, AuditFilters
from conversations.listing.sql_conditions import SqlCondition
from conversations.models import AuditSpan

END = 2**62  # above every entry
HOLDS = {"sqlite": "instr(t.correlation,%s)>0", "postgresql": "strpos(t.correlation,%s)>0"}


class AuditIndexScan(NamedTuple):
    """A scan over entries: each branch is a part of one index, in the order of the list by `seq`.

    `(t.seq+0)` is what the one-column indexes contain, so that no scan along them can become one along the key.
    """

    field: str
    branches: tuple[SqlCondition, ...]
    seq: str = "(t.seq+0)"

    def between(self, above: int, below: int) -> SqlCondition:
        """Return the condition that an entry is between two seqs, both exclusive."""
        return SqlCondition(f"{self.seq}>%s AND {self.seq}<%s", (above, below))


FULL_SCAN = AuditIndexScan("", (SqlCondition("1=1"),), "t.seq")


class AuditConditions(NamedTuple):
    """What an entry must match: two exclusive seq bounds; `tests` by filter name; `words` that its reason must
    contain."""

    above: int
    below: int
    tests: dict[str, SqlCondition]
    scans: list[AuditIndexScan]
    words: list[str]

    def rest(self, scan: AuditIndexScan) -> list[SqlCondition]:
        """Return the conditions that a scan itself does not ensure."""
        return [test for name, test in self.tests.items() if name != scan.field]


def conditions_for(filters: AuditFilters, before: int | None = None) -> AuditConditions:
    """Return the conditions of these filters, for entries below `before`."""
    since, until = filters.begins(datetime.now(UTC)), filters.until
    above, below = (0, END) if since is None and until is None else seqs_between(since, until)
    tests = dict(_tests(filters, since))
    return AuditConditions(
        above, min(below, END if before is None else before), tests, list(_scans(filters)), filters.words
    )


def seqs_between(since: int | None, until: int | None) -> tuple[int, int]:
    """Return two exclusive seq bounds around all entries of a time range (µs UTC, both ends inclusive).

    Entries are numbered as they are written, but a clock may be set back, so numbers say nothing about times. Entries
    between the first and the last span with a moment of the range are also tested by their own time.
    """
    spans = AuditSpan.objects.all()
    if since is not None:
        spans = spans.filter(latest__gte=since)
    if until is not None:
        spans = spans.filter(earliest__lte=until)
    ends = spans.aggregate(first=Min("span"), last=Max("span"))
    if ends["first"] is None:
        return 0, 1
    return (ends["first"] << AuditSpan.BITS) - 1, (ends["last"] + 1) << AuditSpan.BITS


def _scans(filters: AuditFilters) -> Iterator[AuditIndexScan]:
    """Yield the possible scans, the usually rarest first."""
    for field, column, values in (("target", "target", (filters.target,)), ("who", "principal", filters.who)):
        if any(values) and not any(value.endswith(BEGINNING) for value in values):
            yield AuditIndexScan(field, tuple(SqlCondition(f"t.{column}=%s", (value,)) for value in values))


def _tests(filters: AuditFilters, since: int | None) -> Iterator[tuple[str, SqlCondition]]:
    columns = {"who": "principal", "acting_as": "acting_as", "verb": "verb"}
    for field, column in columns.items():
        if values := getattr(filters, field):
            yield field, _among(column, values)
    if filters.target:
        yield "target", _among("target", (filters.target,))
    if filters.conversation:
        yield "conversation", _about(filters.conversation)
    if filters.outcome:
        yield "outcome", SqlCondition("t.outcome=%s", (filters.outcome,))
    if since is not None:
        yield "since", SqlCondition("t.at>=%s", (since,))
    if filters.until is not None:
        yield "until", SqlCondition("t.at<=%s", (filters.until,))


def _among(column: str, values: Sequence[str]) -> SqlCondition:
    """Return a condition on a column in a form that no index serves, so that the walk follows the chosen scan only."""
    parts, params = [], []
    for value in values:
        start = value.removesuffix(BEGINNING)
        if start == value:
            parts.append(f"t.{column}||''=%s")
            params.append(value)
        elif start:
            parts.append(f"substr(t.{column},1,{len(start)})=%s")
            params.append(start)
        else:
            parts.append(f"t.{column}||''<>''")  # anything at all
    return SqlCondition(f"({' OR '.join(parts)})", tuple(params))


def _about(conversation: str) -> SqlCondition:
    """Return the condition that an entry is about a conversation: by its target or its correlation."""
    target = _among("target", (f"conversation:{conversation}",))
    start = conversation.removesuffix(BEGINNING)
    fragment = f'"conversation":{json.dumps(start, ensure_ascii=False)}'  # as `chain.add_entry` writes it
    fragment = fragment if start == conversation else fragment[:-1]
    return SqlCondition(f"({target.sql} OR {HOLDS[connection.vendor]})", (*target.values, fragment))
