"""Filter approval requests by agent, tool and risk, and count what each value would leave. Called by `inbox`.

An approval's row has none of the three: they are read from the request's event, and the risk is what the policy makes
of it now. So a filter looks at `MAX_LOOKED` requests at most; the next page goes on behind them.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from django.db.models import BigIntegerField, Func, OuterRef, QuerySet, Subquery

from conversations.core import hidden_characters
from conversations.events.log import bounded_reads
from conversations.models import Approval, Event
from conversations.runs.policy import evaluate

MAX_LOOKED = 500  # requests
MAX_BYTES = 4 << 20  # of their events
SHOWN = 12  # values of a filter, the most frequent
NAMES = {"agent": "Agent", "tool": "Tool", "risk": "Risk"}


class _ByteSize(Func):
    """The size of a text in bytes. SQLite has `octet_length` since 3.43 only."""

    function = "octet_length"
    output_field = BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:  # Any: as Django passes them
        """Measure the text as a blob."""
        return self.as_sql(compiler, connection, template="length(CAST(%(expressions)s AS BLOB))", **more)


class _Request(msgspec.Struct):
    agent: object = ""
    name: object = ""
    qualified_name: object = ""
    effect: object = ""


_decoder = msgspec.json.Decoder(_Request)


@dataclass(frozen=True, slots=True)
class Filters:
    """The values to filter by; empty: any. As written out where people read it, without hidden characters."""

    agent: str = ""
    tool: str = ""
    risk: str = ""

    def __bool__(self) -> bool:
        return bool(self.agent or self.tool or self.risk)

    def takes(self, request: "Looked") -> bool:
        """Return whether a request passes."""
        return all(wanted in ("", getattr(request, name)) for name, wanted in self.chosen())

    def chosen(self) -> list[tuple[str, str]]:
        """Return name and value of each filter."""
        return [(name, getattr(self, name)) for name in NAMES]

    @property
    def none(self) -> "Filters":
        """No filters."""
        return NONE

    def with_value(self, name: str, value: str) -> "Filters":
        """Return these filters and another."""
        return replace(self, **{name: value})

    def without(self, name: str) -> "Filters":
        """Return the other filters."""
        return replace(self, **{name: ""})


NONE = Filters()


@dataclass(frozen=True, slots=True)
class Looked:
    """What a filter needs of a request."""

    id: str
    agent: str
    tool: str
    risk: str


@dataclass(frozen=True, slots=True)
class RequestFacet:
    """A filter with its most frequent values, each with the number of requests it leaves under the other filters."""

    name: str
    values: list[tuple[str, int]]

    @property
    def label(self) -> str:
        """Its name as shown."""
        return NAMES[self.name]


def sizes(approvals: QuerySet[Approval], limit: int) -> list[tuple[str, int]]:
    """Return the first of these requests, each with the size of its event in bytes, which the database measures."""
    events = Event.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("asked_seq"))
    sized = approvals.annotate(size=Subquery(events.values(size=_ByteSize("body"))[:1]))
    return [(id_, size or 0) for id_, size in sized.values_list("id", "size")[:limit]]


def look(approvals: QuerySet[Approval]) -> tuple[list[Looked], bool]:
    """Return the first of these requests, in their order, and whether there may be more."""
    bodies = Event.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("asked_seq")).values("body")
    rows = approvals.annotate(body=Subquery(bodies[:1])).values_list("id", "body")[:MAX_LOOKED]
    looked: list[Looked] = []
    size = 0
    for id_, body in rows.iterator(bounded_reads.FETCHED):
        looked.append(_looked(id_, body or "{}"))
        size += len(body or "")
        if size > MAX_BYTES:
            return looked, True
    return looked, len(looked) == MAX_LOOKED


def passing(approvals: QuerySet[Approval], filters: Filters) -> list[Approval]:
    """Return those of these requests, at most `MAX_LOOKED`, that pass."""
    ids = {request.id for request in look(approvals)[0] if filters.takes(request)} if filters else set()
    return [row for row in approvals if not filters or row.id in ids]


def facets(approvals: QuerySet[Approval], filters: Filters) -> list[RequestFacet]:
    """Count the values of each filter in the first of these requests; one that is chosen is always among them."""
    requests, _ = look(approvals)
    return [RequestFacet(name, _values(requests, filters, name)) for name in NAMES]


def _values(requests: list[Looked], filters: Filters, name: str) -> list[tuple[str, int]]:
    passing_others = filter(filters.without(name).takes, requests)
    counts = Counter(filter(None, (getattr(request, name) for request in passing_others)))
    shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
    chosen = dict(filters.chosen())[name]
    return shown if not chosen or chosen in dict(shown) else [*shown, (chosen, counts[chosen])]


def _looked(id_: str, body: str) -> Looked:
    try:
        request = _decoder.decode(body.encode("utf-8", "replace"))
    except msgspec.MsgspecError:
        request = _Request()
    agent, tool = str(request.agent or ""), str(request.qualified_name or request.name or "")
    declared = evaluate.Declared("ask", evaluate.as_effect(request.effect))
    risk = evaluate.for_tool(agent, tool, declared).effect
    return Looked(id_, hidden_characters.spelled_out(agent), hidden_characters.spelled_out(tool), risk)
