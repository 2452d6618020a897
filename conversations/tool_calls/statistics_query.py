"""Calls, failures, latency, waiting time and tokens over time. For the statistics page.

Every query is bounded, whatever the range: in each interval `COUNTED` calls of a status are counted from the index
alone and the durations of the newest `TIMED` done ones are read; of the range the newest `ASKED` approval requests,
`TURNS` turns and `REVIEWS` annotations. The page says where a figure was cut off.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from conversations.core.errors import Invalid
from conversations.core.micros import to_datetime, to_micros
from conversations.core.model_prices import ModelTokenCount
from conversations.listing import sql_conditions
from conversations.listing.sql_conditions import SqlCondition
from conversations.listing.url_filters import TIME_SPANS, parse_time
from conversations.models import Annotation, Approval
from conversations.models.tool_call import FAILED, STOPPED
from conversations.models.turn import IS_UNKNOWN
from conversations.tool_calls.listing.filters import STATUSES
from conversations.tool_calls.listing.sql_filters import UNSTAGED, is_staging
from conversations.tool_calls.schemas.call_statistics import RAN

COUNTED = 5_000
TIMED = 200
ASKED = 5_000
TURNS = 50_000
REVIEWS = 5_000
MAX_SPANS = 60
RANGES = {"1h": 60, "24h": 48, "7d": 42, "30d": 30}  # spans of each

US = 1_000_000


@dataclass(frozen=True, slots=True)
class Range:
    """A time range (µs UTC) and its number of equal intervals."""

    name: str
    start: int
    end: int
    spans: int

    @property
    def width(self) -> int:
        """Return the length of an interval, µs."""
        return (self.end - self.start) // self.spans

    def edges(self) -> list[tuple[int, int]]:
        """Return the start and end of each interval, µs UTC."""
        return [(self.start + n * self.width, self.start + (n + 1) * self.width) for n in range(self.spans)]


@dataclass(slots=True)
class TimeSpan:
    """The calls of one interval. Durations in ms, empty if unknown."""

    start: int  # µs UTC
    counts: dict[str, int] = field(default_factory=dict)
    is_cut: bool = False
    took: list[float] = field(default_factory=list)  # ascending
    waited: list[float] = field(default_factory=list)  # seconds, ascending
    open: int = 0  # approval requests that nobody has decided

    @property
    def calls(self) -> int:
        """Return the number of calls."""
        return sum(self.counts.values())

    @property
    def failed(self) -> int:
        """Return how many failed, timed out or have an unknown outcome."""
        return sum(self.counts.get(status, 0) for status in FAILED)

    @property
    def ran(self) -> int:
        """Return how many ran to an end."""
        return sum(self.counts.get(status, 0) for status in RAN)

    @property
    def stopped(self) -> int:
        """Return how many were rejected or blocked before they ran."""
        return sum(self.counts.get(status, 0) for status in STOPPED)

    @property
    def others(self) -> int:
        """Return how many are done or in progress."""
        return self.calls - self.failed - self.stopped


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one agent with one model in one interval; those of `unknown` of its turns are unknown."""

    span: int
    agent: str
    model: str
    is_demo: bool
    input: int
    output: int
    turns: int
    cached: int = 0
    cache_written: int = 0
    unknown: int = 0

    @property
    def tokens(self) -> ModelTokenCount:
        """Return the same as what is priced."""
        written = self.cache_written
        return ModelTokenCount(self.model, self.is_demo, self.input, self.cached, written, self.output, self.unknown)


@dataclass(slots=True)
class Reviews:
    """Annotations of one sender's events: events with a thumb up, with a thumb down, and notes."""

    speaker: str
    up: int = 0
    down: int = 0
    notes: int = 0


@dataclass(frozen=True, slots=True)
class Statistics:
    """Everything the page shows. `turns_since`: the tokens of earlier turns in the range were not counted."""

    range: Range
    spans: list[TimeSpan]
    spent: list[Spent]
    turns_since: datetime | None
    asked_since: datetime | None
    reviews: list[Reviews]  # the most thumbs first


def range_of(last: str, begins: str, ends: str, now: datetime | None = None) -> Range:
    """Parse a range: `last` is a name of `RANGES`, else two moments. Raises Invalid that names the invalid one."""
    now = now or datetime.now(UTC)
    if begins or ends:
        moments = {}
        for name, text in (("from", begins), ("to", ends)):
            try:
                moments[name] = parse_time(text) if text else to_micros(now)
            except Invalid as error:
                raise Invalid(error.message, field=name) from None
        if not begins or moments["from"] >= moments["to"]:
            raise Invalid("must be before To", field="from")
        length = moments["to"] - moments["from"]
        return Range("", moments["from"], moments["to"], max(1, min(MAX_SPANS, length // US)))
    last = last or "24h"
    if last not in RANGES:
        raise Invalid(f"must be one of {', '.join(RANGES)}", field="last")
    spans = RANGES[last]
    width = TIME_SPANS[last][1] // spans // timedelta(microseconds=1)
    end = (to_micros(now) // width + 1) * width  # spans begin at round times
    return Range(last, end - spans * width, end, spans)


def statistics_of(time_range: Range) -> Statistics:
    """Read all statistics of a range."""
    spans = [TimeSpan(start) for start, _ in time_range.edges()]
    seen = (
        UNSTAGED if is_staging() else SqlCondition("1=1")
    )  # asked of what was read: the bounds hold beside an import, too
    _count(time_range, spans, seen)
    _time(time_range, spans, seen)
    asked_since = _wait(time_range, spans)
    spent, turns_since = _spend(time_range, seen)
    for span in spans:
        span.took.sort()
        span.waited.sort()
    return Statistics(time_range, spans, spent, turns_since, asked_since, _review(time_range))


def _count(time_range: Range, spans: list[TimeSpan], seen: SqlCondition) -> None:
    part = (
        f"SELECT %s AS n,COALESCE(SUM(CASE WHEN {seen.sql} THEN 1 ELSE 0 END),0),COUNT(*) FROM (SELECT conversation_id"
        " FROM conversations_toolcall WHERE status=%s AND started_at>=%s AND started_at<%s LIMIT %s) AS t"
    )
    sql = " UNION ALL ".join([part] * time_range.spans)
    for status in STATUSES:
        values: list[Any] = []
        for number, (start, end) in enumerate(time_range.edges()):
            values += (number, *seen.values, status, start, end, COUNTED + 1)
        for number, count, looked_at in sql_conditions.fetch_rows(sql, values):
            spans[number].is_cut = spans[number].is_cut or looked_at > COUNTED
            if count:
                spans[number].counts[status] = min(count, COUNTED)


def _time(time_range: Range, spans: list[TimeSpan], seen: SqlCondition) -> None:
    part = (
        "SELECT %s AS n,duration_ms FROM (SELECT conversation_id,duration_ms FROM conversations_toolcall"
        " WHERE status='done' AND started_at>=%s AND started_at<%s ORDER BY started_at DESC LIMIT %s) AS t"
        f" WHERE {seen.sql} AND duration_ms>0"  # a duration of 0 is unknown
    )
    values: list[Any] = []
    for number, (start, end) in enumerate(time_range.edges()):
        values += (number, start, end, TIMED, *seen.values)
    sql = " UNION ALL ".join([part] * time_range.spans)
    for number, ms in sql_conditions.fetch_rows(sql, values):
        spans[number].took.append(ms)


def _wait(time_range: Range, spans: list[TimeSpan]) -> datetime | None:
    """Read how long people took to decide, rules left out; return the start of what was read if there were too many
    requests."""
    approvals = Approval.objects.filter(
        asked_at__gte=time_range.start, asked_at__lt=time_range.end, conversation__is_staged=False
    )
    rows = list(approvals.order_by("-asked_at").values_list("asked_at", "decided_at", "status", "rule")[:ASKED])
    for asked_at, decided_at, status, rule in rows:
        span = spans[min((asked_at - time_range.start) // time_range.width, time_range.spans - 1)]
        if status == "pending":
            span.open += 1
        elif status == "decided" and decided_at is not None and rule is None:
            span.waited.append((decided_at - asked_at) / US)
    return to_datetime(rows[-1][0]) if len(rows) == ASKED else None


def _spend(time_range: Range, seen: SqlCondition) -> tuple[list[Spent], datetime | None]:
    newest = (
        "SELECT conversation_id,at,agent,model,is_demo,input_tokens,output_tokens,cached_tokens,cache_write_tokens"
        " FROM conversations_turn WHERE at>=%s AND at<%s ORDER BY at DESC LIMIT %s"
    )
    rows = sql_conditions.fetch_rows(
        "SELECT (at-%s)/%s,agent,model,is_demo,SUM(input_tokens),SUM(output_tokens),COUNT(*),"
        "SUM(cached_tokens),SUM(cache_write_tokens),"
        f"SUM(CASE WHEN {IS_UNKNOWN} THEN 1 ELSE 0 END),MIN(at) FROM ({newest}) AS t WHERE {seen.sql}"
        " GROUP BY 1,2,3,4 ORDER BY 1,2,3,4",
        [time_range.start, time_range.width, time_range.start, time_range.end, TURNS, *seen.values],
    )
    spent: dict[tuple[Any, ...], list[int]] = defaultdict(lambda: [0] * 6)
    for span, agent, model, is_demo, *figures, _ in rows:
        for index, number in enumerate(figures):
            spent[min(int(span), time_range.spans - 1), agent, model, bool(is_demo)][index] += int(number)
    is_cut = sum(row[6] for row in rows) >= TURNS
    oldest = to_datetime(min(row[10] for row in rows)) if is_cut else None
    return [Spent(*key, *sums) for key, sums in spent.items()], oldest


def _review(time_range: Range) -> list[Reviews]:
    """Count annotations by the sender they are about. Of one person's thumbs on an event the newest counts."""
    rows = Annotation.objects.filter(
        at__gte=time_range.start, at__lt=time_range.end, conversation__is_staged=False
    ).order_by("-at", "-seq")
    by_speaker: dict[str, Reviews] = {}
    settled = set()
    for conversation, about, author, thumb, speaker in rows.values_list(
        "conversation_id", "about", "author", "thumb", "speaker"
    )[:REVIEWS]:
        reviews = by_speaker.setdefault(speaker, Reviews(speaker))
        if not thumb:
            reviews.notes += 1
        elif (conversation, about, author) not in settled:
            settled.add((conversation, about, author))
            reviews.up += thumb == "up"
            reviews.down += thumb == "down"
    counted = [reviews for reviews in by_speaker.values() if reviews.up or reviews.down or reviews.notes]
    return sorted(counted, key=lambda reviews: (-reviews.up - reviews.down, -reviews.notes, reviews.speaker))
