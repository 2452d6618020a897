"""The numbers page: charts over a range of time, each with the table behind it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from markupsafe import Markup

from conversations import hues
from conversations.errors import Invalid
from conversations.fragments import chart, hidden, richtext, times, who
from conversations.toolcalls import numbers as reading
from conversations.toolcalls.filters import LAST, iso
from conversations.toolcalls.numbers import Numbers, rank
from dashboard.pages.allowed import takes
from dashboard.pages.frame import page

MOST_AGENTS = 6  # series of the chart of tokens; the others are one
PERCENTS = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of value: its name, and what colours it."""

    name: str | Markup
    tone: str = ""
    hue: int | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its table. `shapes` are bars or lines; `rows` begin with the moment of their span."""

    name: str
    title: str
    lede: str
    series: list[Series]
    top: str
    shapes: list[Any]
    is_lines: bool
    head: list[str | Markup]
    rows: list[tuple[datetime, list[str]]]
    told: str  # the chart in a sentence


@require_safe
@takes("view")
def numbers(request: HttpRequest) -> HttpResponse:
    """Draw the range `?last=` (1h, 24h, 7d, 30d), or `?from=` and `?to=`."""
    hues.refresh()
    asked = {name: request.GET.get(name, "").strip()[:40] for name in ("last", "from", "to")}
    try:
        found = reading.numbers(reading.range_of(asked["last"], asked["from"], asked["to"]))
        wrong = {}
    except Invalid as error:
        found, wrong = None, {error.field: hidden.spell(error.message)}
    return page(
        request, "numbers.html", status=400 if wrong else 200, wrong=wrong, asked=asked,
        ranges={name: LAST[name][0] for name in reading.RANGES}, chosen=found.range.name if found else "",
        charts=[_calls(found), _latency(found), _waiting(found), _tokens(found)] if found else [],
        spent=_spent(found) if found else [], found=found, bounds=reading,
        ends=[_at(found.range.start), _at(found.range.end)] if found else [],
        calls_query=f"from={iso(found.range.start)}&to={iso(found.range.end)}" if found else "",
        totals=_totals(found) if found else {},
    )  # fmt: skip


def _totals(found: Numbers) -> dict[str, tuple[str, str]]:
    """Answer the figures over the whole range, each with its tone."""
    calls, failed = sum(span.calls for span in found.spans), sum(span.failed for span in found.spans)
    plus = "+" if any(span.is_cut for span in found.spans) else ""
    took = sorted(ms for span in found.spans for ms in span.took)
    waited = sorted(s for span in found.spans for s in span.waited)
    spent = sum(one.input + one.output for one in found.spent)
    return {
        "Calls": (f"{calls:,}{plus}", ""),
        "Failed": (
            f"{failed:,}" + (f" ({100 * failed / calls:.1f} %)" if calls and not plus else ""),
            "failed" if failed else "",
        ),
        "Median": (times.duration(rank(took, 50)) or "–", ""),
        "Slowest 5 %": (times.duration(rank(took, 95)) or "–", ""),
        "People took": (_seconds(rank(waited, 50)), ""),
        "Tokens": (_compact(spent), ""),
    }


def _calls(found: Numbers) -> Chart:
    kinds = [[float(span.others) for span in found.spans], [float(span.stopped) for span in found.spans]]
    kinds.append([float(span.failed) for span in found.spans])
    series = [Series("done or under way"), Series("stopped before", "waiting"), Series("failed", "failed")]
    rows = [
        [f"{span.calls:,}{'+' if span.is_cut else ''}", f"{span.others:,}", f"{span.stopped:,}", f"{span.failed:,}"]
        for span in found.spans
    ]
    told = f"{sum(s.calls for s in found.spans):,} calls, {sum(s.failed for s in found.spans):,} of them failed"
    return _stacked(
        found, "calls", "Calls", told, series, kinds, ["Calls", "Done or under way", "Stopped", "Failed"], rows
    )


def _latency(found: Numbers) -> Chart:
    lines = [[rank(span.took, percent) for span in found.spans] for percent in PERCENTS]
    series = [Series("median"), Series("95 %", "waiting"), Series("99 %", "failed")]
    rows = [
        [*(times.duration(line[n]) or "–" for line in lines), f"{len(span.took):,}"]
        for n, span in enumerate(found.spans)
    ]
    return _lined(
        found, "latency", "How long calls take", series, lines, [*("Median", "95 %", "99 %"), "Measured"], rows, _ms
    )


def _waiting(found: Numbers) -> Chart:
    lines = [[rank(span.waited, percent) for span in found.spans] for percent in PERCENTS[:2]]
    series = [Series("median"), Series("95 %", "waiting")]
    rows = [
        [*(_seconds(line[n]) for line in lines), f"{len(span.waited):,}", f"{span.open:,}"]
        for n, span in enumerate(found.spans)
    ]
    head: list[str | Markup] = ["Median", "95 %", "Decided", "Still waiting"]
    return _lined(found, "waiting", "How long agents wait for people", series, lines, head, rows, _seconds)


def _tokens(found: Numbers) -> Chart:
    sums: Counter[str] = Counter()
    for one in found.spent:
        sums[one.agent] += one.input + one.output
    shown = [agent for agent, _ in sums.most_common(MOST_AGENTS)]
    series = [Series(richtext.inline(agent or "unknown"), hue=who.hue(agent)) for agent in shown]
    series += [Series("others")] if len(sums) > len(shown) else []
    kinds = [[0.0] * len(found.spans) for _ in series]
    for one in found.spent:
        place = shown.index(one.agent) if one.agent in shown else len(shown)
        kinds[place][one.span] += one.input + one.output
    rows = [[f"{kind[n]:,.0f}" for kind in kinds] for n in range(len(found.spans))]
    told = f"{sum(sums.values()):,} tokens by {len(sums):,} agents"
    return _stacked(found, "tokens", "Tokens by agent", told, series, kinds, [one.name for one in series], rows)


def _spent(found: Numbers) -> list[dict[str, Any]]:
    """Answer the tokens by agent and model over the whole range, the most first."""
    sums: dict[tuple[str, str, bool], list[int]] = {}
    for one in found.spent:
        kept = sums.setdefault((one.agent, one.model, one.is_demo), [0, 0, 0])
        for place, number in enumerate((one.input, one.output, one.turns)):
            kept[place] += number
    most = sorted(sums.items(), key=lambda pair: -sum(pair[1][:2]))
    return [
        {
            "agent": who.of_name(agent), "model": richtext.inline(model or "not told"), "is_demo": is_demo,
            "input": f"{used:,}", "output": f"{given:,}", "turns": f"{turns:,}",
        }
        for (agent, model, is_demo), (used, given, turns) in most[:100]
    ]  # fmt: skip


def _stacked(
    found: Numbers, name: str, title: str, told: str, series: list[Series], kinds: list[list[float]],
    head: Sequence[str | Markup], rows: list[list[str]],
) -> Chart:  # fmt: skip
    top = chart.top_of([sum(kind[n] for kind in kinds) for n in range(len(found.spans))])
    shapes = chart.bars(kinds, len(found.spans), top)
    return Chart(name, title, told, series, _compact(top), shapes, False, list(head), _table(found, rows), told)


def _lined(
    found: Numbers, name: str, title: str, series: list[Series], values: list[list[float | None]],
    head: Sequence[str | Markup], rows: list[list[str]], words: Callable[[float | None], str],
) -> Chart:  # fmt: skip
    known = [value for line in values for value in line if value is not None]
    top = chart.top_of(known)
    told = (
        f"median up to {words(max((v for v in values[0] if v is not None), default=None))}"
        if known
        else "nothing measured"
    )
    shapes = chart.lines(values, top)
    return Chart(
        name, title, told, series, words(top) if known else "", shapes, True, list(head), _table(found, rows), told
    )


def _table(found: Numbers, rows: list[list[str]]) -> list[tuple[datetime, list[str]]]:
    """Answer the rows of a table, the newest first: who looks at it looks for what was just now."""
    return [(_at(span.start), row) for span, row in zip(found.spans, rows, strict=True)][::-1]


def _at(micros: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


def _ms(value: float | None) -> str:
    return times.duration(value) or "–"


def _seconds(value: float | None) -> str:
    return "–" if value is None else times.duration(value * 1000) or "0 s"


def _compact(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 10 * size or (number >= size and number % size == 0):
            return f"{number / size:,.3g} {letter}"
    return f"{number:,.0f}"
