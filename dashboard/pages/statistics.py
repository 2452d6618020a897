"""The statistics page: charts over a range of time, each with its table."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations.core import hidden_characters, model_prices
from conversations.core.errors import Invalid
from conversations.core.micros import to_datetime
from conversations.core.model_prices import ModelTokenCount
from conversations.core.plain_text import counted
from conversations.listing.url_filters import TIME_SPANS, end_to_iso, to_iso
from conversations.rendering import agent_colors, participant_marks, richtext, svg_chart, timestamps
from conversations.tool_calls import statistics_query
from conversations.tool_calls.schemas.call_statistics import rank
from conversations.tool_calls.statistics_query import Statistics
from dashboard.pages.base_context import render_page
from dashboard.require_permission import require_permission

MAX_AGENTS = 6  # series of the chart of tokens; the others, if they are more than one, share another
PERCENTS = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of value: its name and its color."""

    name: str | Markup
    tone: str = ""
    hue: int | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its table. `core` holds bars or lines; each of `rows` begins with the start of its interval."""

    name: str
    title: str
    summary: str  # the chart in a sentence
    series: list[Series]
    top: str
    shapes: list[Any]
    is_lines: bool
    head: list[str | Markup]
    rows: list[tuple[datetime, list[str]]]


@require_safe
@require_permission("view")
def statistics(request: HttpRequest) -> HttpResponse:
    """Show the charts of the range `?last=` (1h, 24h, 7d, 30d), or of `?from=` and `?to=`."""
    agent_colors.refresh_colors()
    params = {name: request.GET.get(name, "").strip()[:40] for name in ("last", "from", "to")}
    try:
        stats = statistics_query.statistics_of(statistics_query.range_of(params["last"], params["from"], params["to"]))
        wrong = {}
    except Invalid as error:
        stats, wrong = None, {error.field: hidden_characters.spelled_out(error.message)}
    return render_page(
        request, "statistics.html", status=400 if wrong else 200, wrong=wrong, asked=params,
        ranges={name: TIME_SPANS[name][0] for name in statistics_query.RANGES},
        chosen=stats.range.name if stats else "",
        charts=[_calls(stats), _latency(stats), _waiting(stats), _tokens(stats)] if stats else [],
        spent=_spent(stats) if stats else [], reviews=_reviews(stats) if stats else [], found=stats,
        bounds=statistics_query, is_by_second=stats is not None and stats.range.width < 60_000_000,
        ends=[to_datetime(stats.range.start), to_datetime(stats.range.end)] if stats else [],
        calls_query=f"from={to_iso(stats.range.start)}&to={end_to_iso(stats.range.end)}" if stats else "",
        totals=_totals(stats) if stats else {},
    )  # fmt: skip


def _totals(stats: Statistics) -> dict[str, tuple[str, str]]:
    """Return the figures for the whole range, each with its tone."""
    calls, failed = sum(span.calls for span in stats.spans), sum(span.failed for span in stats.spans)
    ran = sum(span.ran for span in stats.spans)
    plus = "+" if any(span.is_cut for span in stats.spans) else ""
    durations_ms = sorted(ms for span in stats.spans for ms in span.took)
    waited = sorted(s for span in stats.spans for s in span.waited)
    return {
        "Calls": (f"{calls:,}{plus}", ""),
        "Failed": (
            f"{failed:,}" + (f" ({100 * failed / ran:.1f} %)" if ran and not plus else ""),
            "failed" if failed else "",
        ),
        "Median": (_ms(rank(durations_ms, 50)), ""),
        "p95": (_ms(rank(durations_ms, 95)), ""),
        "Approval wait, median": (_seconds(rank(waited, 50)), ""),
        "Tokens": (_total_tokens(stats), ""),
        "Cost": (_total_cost(stats), ""),
    }


def _total_tokens(stats: Statistics) -> str:
    """Return the tokens of all turns as text, which says if those of some are unknown."""
    turns, unknown = sum(entry.turns for entry in stats.spent), sum(entry.unknown for entry in stats.spent)
    if turns and turns == unknown:
        return "–"
    return _compact(sum(entry.input + entry.output for entry in stats.spent)) + ("+" if unknown else "")


def _total_cost(stats: Statistics) -> str:
    """Return the cost of all turns with a known price as text, which says if the price of others is unknown."""
    return _cost(*(entry.tokens for entry in stats.spent))


def _calls(stats: Statistics) -> Chart:
    kinds = [[float(span.others) for span in stats.spans], [float(span.stopped) for span in stats.spans]]
    kinds.append([float(span.failed) for span in stats.spans])
    series = [Series("done or in progress"), Series("not run", "waiting"), Series("failed", "failed")]
    rows = [
        [f"{span.calls:,}{'+' if span.is_cut else ''}", f"{span.others:,}", f"{span.stopped:,}", f"{span.failed:,}"]
        for span in stats.spans
    ]
    summary = (
        f"{counted(sum(s.calls for s in stats.spans), 'call')}, {sum(s.failed for s in stats.spans):,} of them failed"
    )
    return _stacked(
        stats, "calls", "Calls", summary, series, kinds, ["Calls", "Done or in progress", "Not run", "Failed"], rows
    )


def _latency(stats: Statistics) -> Chart:
    lines = [[rank(span.took, percent) for span in stats.spans] for percent in PERCENTS]
    series = [Series("median"), Series("p95", "waiting"), Series("p99", "failed")]
    rows = [[*(_ms(line[n]) for line in lines), f"{len(span.took):,}"] for n, span in enumerate(stats.spans)]
    return _lined(stats, "latency", "Call duration", series, lines, [*("Median", "p95", "p99"), "Measured"], rows, _ms)


def _waiting(stats: Statistics) -> Chart:
    lines = [[rank(span.waited, percent) for span in stats.spans] for percent in PERCENTS[:2]]
    series = [Series("median"), Series("p95", "waiting")]
    rows = [
        [*(_seconds(line[n]) for line in lines), f"{len(span.waited):,}", f"{span.open:,}"]
        for n, span in enumerate(stats.spans)
    ]
    head: list[str | Markup] = ["Median", "p95", "Decided", "Still waiting"]
    return _lined(stats, "waiting", "Approval wait", series, lines, head, rows, _seconds)


def _tokens(stats: Statistics) -> Chart:
    sums: Counter[str] = Counter()
    known = [entry for entry in stats.spent if entry.turns > entry.unknown]
    for entry in known:
        sums[entry.agent] += entry.input + entry.output
    shown = [agent for agent, _ in sums.most_common(MAX_AGENTS + 1)]
    shown = shown if len(shown) == len(sums) else shown[:MAX_AGENTS]
    hues = participant_marks.distinct_hues(shown)
    series = [Series(richtext.inline(agent or "unknown"), hue=hues[agent]) for agent in shown]
    series += [Series("others")] if len(sums) > len(shown) else []
    kinds = [[0.0] * len(stats.spans) for _ in series]
    for entry in known:
        index = shown.index(entry.agent) if entry.agent in shown else len(shown)
        kinds[index][entry.span] += entry.input + entry.output
    rows = [[f"{kind[n]:,.0f}" for kind in kinds] for n in range(len(stats.spans))]
    unknown = sum(entry.unknown for entry in stats.spent)
    summary = f"{counted(sum(sums.values()), 'token')} by {counted(len(sums), 'agent')}"
    summary += f"; unknown for {counted(unknown, 'turn')}" if unknown else ""
    return _stacked(stats, "tokens", "Tokens by agent", summary, series, kinds, [entry.name for entry in series], rows)


def _spent(stats: Statistics) -> list[dict[str, Any]]:
    """Return the tokens by agent and model over the whole range, the highest first; of turns that did not tell their
    tokens only how many there were."""
    sums: dict[tuple[str, str, bool], list[int]] = {}
    for entry in stats.spent:
        totals = sums.setdefault((entry.agent, entry.model, entry.is_demo), [0] * 6)
        of_cache = entry.cached, entry.cache_written
        for index, number in enumerate((entry.input, entry.output, entry.turns, *of_cache, entry.unknown)):
            totals[index] += number
    most = sorted(sums.items(), key=lambda pair: -sum(pair[1][:2]))
    return [
        {
            "agent": participant_marks.mark_for_name(agent),
            "model": richtext.inline(model or "unknown"),
            "is_demo": is_demo,
            "input": _at_least(used, turns, unknown),
            "output": _at_least(output_tokens, turns, unknown),
            "turns": f"{turns:,}",
            "unknown": f"{unknown:,}" if unknown else "",
            "cost": _cost(ModelTokenCount(model, is_demo, used, cached, written, output_tokens, unknown)),
        }
        for (agent, model, is_demo), (used, output_tokens, turns, cached, written, unknown) in most[:100]
    ]


def _at_least(tokens: int, turns: int, unknown: int) -> str:
    return "–" if turns == unknown else f"{tokens:,}{'+' if unknown else ''}"


def _cost(*counts: ModelTokenCount) -> str:
    cost = model_prices.total(counts)
    if counts and cost.is_free:
        return "free"
    return model_prices.shown(cost.dollars) + ("+" if cost.is_partial and cost.dollars is not None else "")


def _quoted(speaker: str) -> str:
    return '"' + speaker.replace('"', " ") + '"' if speaker else ""


def _reviews(stats: Statistics) -> list[dict[str, Any]]:
    """Return the thumbs given to each sender, with the share of thumbs up."""
    return [
        {
            "speaker": participant_marks.mark_for(reviews.speaker) if reviews.speaker else None,
            "up": f"{reviews.up:,}",
            "down": f"{reviews.down:,}",
            "notes": f"{reviews.notes:,}",
            "searches": {
                kind: reverse("search", query={"kind": kind, "q": _quoted(reviews.speaker)})
                for kind in ("thumb.up", "thumb.down", "event.annotated")
            },
            "share": f"{100 * reviews.up / (reviews.up + reviews.down):.0f} %" if reviews.up + reviews.down else "–",
        }
        for reviews in stats.reviews[:100]
    ]


def _stacked(
    stats: Statistics, name: str, title: str, summary: str, series: list[Series], kinds: list[list[float]],
    head: Sequence[str | Markup], rows: list[list[str]],
) -> Chart:  # fmt: skip
    top = svg_chart.top_of([sum(kind[n] for kind in kinds) for n in range(len(stats.spans))])
    shapes = svg_chart.bars(kinds, len(stats.spans), top)
    return Chart(name, title, summary, series, _compact(top), shapes, False, list(head), _table(stats, rows))


def _lined(
    stats: Statistics, name: str, title: str, series: list[Series], values: list[list[float | None]],
    head: Sequence[str | Markup], rows: list[list[str]], format_value: Callable[[float | None], str],
) -> Chart:  # fmt: skip
    measured = [value for line in values for value in line if value is not None]
    top = svg_chart.top_of(measured)
    highest = max((value for value in values[0] if value is not None), default=None)
    summary = f"median up to {format_value(highest)}" if measured else "no data"
    label = format_value(top) if measured else ""
    shapes = svg_chart.lines(values, top)
    return Chart(name, title, summary, series, label, shapes, True, list(head), _table(stats, rows))


def _table(stats: Statistics, rows: list[list[str]]) -> list[tuple[datetime, list[str]]]:
    """Return the rows of a table, newest first: readers look for the most recent."""
    return [(to_datetime(span.start), row) for span, row in zip(stats.spans, rows, strict=True)][::-1]


def _ms(value: float | None) -> str:
    return timestamps.duration(value) or "–"


def _seconds(value: float | None) -> str:
    return "–" if value is None else timestamps.duration(value * 1000) or "0 s"


def _compact(number: float) -> str:
    """Return a number with three significant digits from 1,000 on: 999, 1.31 M, 250 k."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:  # what would be rounded up to 1,000 of the next smaller unit
            return f"{float(f'{number / size:.3g}'):,g} {letter}"
    return f"{number:,.0f}"
