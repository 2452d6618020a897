"""Count an answer's tokens once if two instrumentations reported it, a span of one within a span of the other. Called
by `intake`.

Of the spans in one request the outermost with tokens counts, across requests the first. Between the two may be spans
that the record does not show (an HTTP request's), unless these come after both.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from conversations.telemetry.span import Span
from conversations.telemetry.span_facts import NOTHING_SPENT, SpanFacts

MAX_REMEMBERED = 200  # spans of one trace, of each sort, the newest


_decoder = msgspec.json.Decoder(list[dict[str, str]])


class ReadSpan(NamedTuple):
    """A span with its facts."""

    span: Span
    facts: SpanFacts


class Counted:
    """What is known of a trace's tokens from earlier requests."""

    def __init__(self) -> None:
        self.within: dict[str, str] = {}  # answers whose tokens are counted, and those inside of them
        self.around: dict[str, str] = {}  # spans with one inside whose tokens are counted
        self.parents: dict[str, str] = {}  # of spans that tell nothing of the record

    def as_json(self) -> str:
        """Return it as a list of three objects: spans, and of each its parent."""
        return msgspec.json.encode((self.within, self.around, self.parents)).decode()

    def add(self, stored: str) -> None:
        """Add what `as_json` returned in any process."""
        for spans, more in zip((self.within, self.around, self.parents), _decoder.decode(stored), strict=True):
            for span_id, parent_id in more.items():
                if span_id not in spans:
                    _remember(spans, span_id, parent_id)


class _Around(NamedTuple):
    """What is around a span: answers in this request from the inside out, then the parent that is not in it."""

    answers: list[ReadSpan]
    missing: str


ById = Mapping[tuple[str, str], ReadSpan]


def count_once(items: Sequence[ReadSpan], by_id: ById, traces: Mapping[str, Counted]) -> None:
    """Remove the tokens from those spans of a request whose tokens count elsewhere."""
    plain = [item for item in items if not item.facts.kind]
    answers = [item for item in items if _is_answer(item)]
    for span, _ in plain:
        if span.parent_id:
            _remember(traces[span.trace_id].parents, span.span_id, span.parent_id)
    for item in (*plain, *answers):
        counted = traces[item.span.trace_id]
        if item.span.span_id in counted.around:
            _mark_outward(_around(item, by_id, counted), counted)
    for item in [item for item in answers if _is_counted(item, by_id, traces[item.span.trace_id])]:
        item.facts.usage = NOTHING_SPENT


def _is_answer(item: ReadSpan) -> bool:
    return item.facts.kind == "model" and not item.span.is_log and not item.span.is_pending


def _is_counted(item: ReadSpan, by_id: ById, counted: Counted) -> bool:
    """Return whether an answer's tokens count elsewhere; if not, remember that they count here."""
    around = _around(item, by_id, counted)
    if _is_inside(around, counted):
        _remember(counted.within, item.span.span_id)
        return True
    if item.span.span_id in counted.around:
        return True
    if item.facts.usage != NOTHING_SPENT:
        _remember(counted.within, item.span.span_id)
        if around.missing:
            _remember(counted.around, around.missing)
    return False


def _is_inside(around: _Around, counted: Counted) -> bool:
    """Return whether a span is inside one whose tokens count, in this request or an earlier one."""
    return around.missing in counted.within or any(
        facts.usage != NOTHING_SPENT and span.span_id not in counted.around for span, facts in around.answers
    )


def _mark_outward(around: _Around, counted: Counted) -> None:
    """Remember for everything around a span that a counted one is inside."""
    for item in around.answers:
        _remember(counted.around, item.span.span_id)
    if around.missing:
        _remember(counted.around, around.missing)


def _around(item: ReadSpan, by_id: ById, counted: Counted) -> _Around:
    trace_id, parent_id, answers, passed = item.span.trace_id, item.span.parent_id, list[ReadSpan](), set[str]()
    while parent_id and parent_id not in passed:
        passed.add(parent_id)
        outer = by_id.get((trace_id, parent_id))
        if outer is None and parent_id not in counted.parents:
            return _Around(answers, parent_id)
        if outer is not None and outer.facts.kind:
            if not _is_answer(outer):
                break
            answers.append(outer)
        parent_id = outer.span.parent_id if outer is not None else counted.parents[parent_id]
    return _Around(answers, "")


def _remember(spans: dict[str, str], span_id: str, parent_id: str = "") -> None:
    spans[span_id] = parent_id
    if len(spans) > MAX_REMEMBERED:
        del spans[next(iter(spans))]
