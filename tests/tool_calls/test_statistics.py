"""The numbers page: what it counts and measures is what a look at every row finds; what is cut is said."""

import re
from datetime import UTC, datetime

import pytest
from django.db.models import Max, Min

from conversations.core import model_prices
from conversations.core.errors import Invalid
from conversations.core.model_prices import ModelTokenCount
from conversations.events import log
from conversations.events.log.import_staging import StagedBatch
from conversations.models import Approval, Conversation, ToolCall, Turn, User
from conversations.runs.approvals import decide
from conversations.tool_calls import statistics_query
from conversations.tool_calls.schemas import call_statistics
from conversations.tool_calls.schemas.call_statistics import rank
from conversations.tool_calls.statistics_query import Range, range_of
from dashboard.pages import statistics
from tests.support import teamwork, toolcalls
from tests.support.cast import client_of
from tests.support.visits import words

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 22, 8, 30, 12, tzinfo=UTC)
MINUTE = 60_000_000  # µs


def _output(**usage: int) -> dict[str, object]:
    return {"event": "output", "agent": "A", "text": "said", "model": "m", "usage": usage}


def test_what_is_cut_is_said(monkeypatch):
    monkeypatch.setattr(statistics_query, "COUNTED", 4)
    monkeypatch.setattr(statistics_query, "TIMED", 3)
    for number in range(6):
        log.append(toolcalls.call("c", number, duration_ms=float(number)))
    at = ToolCall.objects.aggregate(last=Max("started_at"))["last"]

    span = statistics_query.statistics_of(Range("", at - MINUTE, at + MINUTE, 1)).spans[0]

    assert (span.counts, span.is_cut) == ({"done": 4}, True)
    assert span.took == [3.0, 4.0, 5.0]


def test_a_duration_of_0_is_unknown_and_the_share_that_failed_is_of_those_that_ran(people):
    for number, ms in enumerate((0.0, 4.0, 0.0)):
        log.append(toolcalls.call("c", number, duration_ms=ms))
    schema = "5c" * 32
    ToolCall.objects.update(schema=schema, run="r")
    at = ToolCall.objects.aggregate(last=Max("started_at"))["last"]

    stats = statistics_query.statistics_of(Range("", at - MINUTE, at + MINUTE, 1))

    assert stats.spans[0].took == [4.0]
    assert call_statistics.figures_of([schema]).latency == call_statistics.Latency(4.0, 4.0, 4.0, 1)
    stats.spans[0].counts = {"rejected": 75, "waiting": 3, "done": 20, "failed": 5}
    assert statistics._totals(stats)["Failed"][0] == "5 (20.0 %)"


def test_intervals_of_less_than_a_minute_are_told_apart(people):
    page = client_of(people["viewer"]).get("/numbers/?from=2026-11-22T08:30:00Z&to=2026-11-22T08:30:20Z")
    html = page.content.decode()

    table = html[html.index('<th scope="row">') : html.index("</tbody>")]
    moments = re.findall(r"<time [^>]*data-clock>([^<]*)<", table)
    assert len(moments) == len(set(moments)) == 20
    assert 'data-clock="minute">2026-11-22 08:30<' not in html
    assert 'data-clock="minute"' in client_of(people["viewer"]).get("/numbers/?last=1h").content.decode()


def test_the_demo_model_is_free_and_not_of_an_unknown_price(people):
    assert model_prices.CostSum().is_free
    demo = ModelTokenCount("demo", True, 5, 0, 0, 5)
    assert statistics._cost(demo) == "free"
    assert statistics._cost() == "–"
    assert statistics._cost(demo, ModelTokenCount("of-nobody", False, 5, 0, 0, 5)) == "–"


def test_what_an_import_still_writes_is_not_counted():
    log.append(toolcalls.call("seen", 1, duration_ms=5.0))
    log.append(toolcalls.call("staged", 2, duration_ms=7.0))
    log.append([toolcalls.event("staged", _output(input_tokens=3, output_tokens=4))])
    assert Turn.objects.exists()
    Conversation.objects.filter(key="staged").update(is_staged=True)
    at = ToolCall.objects.aggregate(last=Max("started_at"))["last"]

    numbers_read = statistics_query.statistics_of(Range("", at - MINUTE, at + MINUTE, 1))

    assert (numbers_read.spans[0].calls, numbers_read.spans[0].took, numbers_read.spent) == (1, [5.0], [])


def test_a_call_that_a_rule_approved_had_nobody_wait(team: dict[str, User]) -> None:
    teamwork.team()
    by_person, by_rule = (teamwork.ask(team["operator"], key) for key in ("a", "b"))
    for approval in (by_person, by_rule):
        decide.decide(team["approver"], approval.id, "approve")
    Approval.objects.filter(id=by_rule.id).update(rule="rule")
    by_person.refresh_from_db()
    whole = Range("", by_person.asked_at - MINUTE, by_rule.asked_at + MINUTE, 1)

    waited = statistics_query.statistics_of(whole).spans[0].waited

    assert waited == [((by_person.decided_at or 0) - by_person.asked_at) / 1e6]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((0, "0"), (999, "999"), (1_000, "1 k"), (1_308_531, "1.31 M"), (25_449, "25.4 k"), (999_499, "999 k")),
        *((999_500, "1 M"), (9_999_999, "10 M"), (1.5e9, "1.5 G"), (1.5e12, "1,500 G")),
    ],
)
def test_a_large_number_is_short(number: float, text: str) -> None:
    assert statistics._compact(number) == text


@pytest.mark.parametrize(
    ("values", "percent", "wanted"),
    [([], 50, None), ([7.0], 99, 7.0), ([1.0, 2.0], 50, 1.0), ([1.0, 2.0, 3.0], 50, 2.0),
     (list(map(float, range(1, 101))), 95, 95.0), (list(map(float, range(1, 101))), 99, 99.0)],
)  # fmt: skip
def test_a_percentile_is_a_value_that_was_measured(values, percent, wanted):
    assert rank(values, percent) == wanted


def test_a_named_range_ends_after_now_at_a_round_time():
    for name, spans in statistics_query.RANGES.items():
        range_read = range_of(name, "", "", NOW)

        assert (range_read.name, range_read.spans, len(range_read.edges())) == (name, spans, spans)
        assert range_read.end > NOW.timestamp() * 1e6 >= range_read.end - range_read.width
        assert range_read.end % range_read.width == 0


@pytest.mark.parametrize(
    ("last", "begins", "ends", "field"),
    [("2y", "", "", "last"), ("", "yesterday", "", "from"), ("", "2026-01-01", "never", "to"),
     ("", "2026-01-02", "2026-01-01", "from"), ("", "", "2026-01-01", "from")],
)  # fmt: skip
def test_a_range_that_is_none_names_its_mistake(last, begins, ends, field):
    with pytest.raises(Invalid) as refusal:
        range_of(last, begins, ends, NOW)

    assert refusal.value.field == field


def test_what_counts_as_failed_and_as_stopped():
    counts = {"failed": 1, "timeout": 2, "unknown": 4, "rejected": 8, "blocked": 16, "done": 32, "waiting": 64}

    span = statistics_query.TimeSpan(0, counts)

    assert (span.failed, span.stopped, span.others, span.calls) == (7, 24, 96, 127)


def test_a_count_that_ended_among_calls_nobody_sees_yet_says_so(monkeypatch):
    monkeypatch.setattr(statistics_query, "COUNTED", 4)
    batch = StagedBatch()
    staged = batch.stage("brought")
    log.append([event_ for n in range(6) for event_ in toolcalls.call(staged, n)], chained_as=batch.chained_as)
    log.append([event_ for n in range(3) for event_ in toolcalls.call("desk", n)])
    ends = ToolCall.objects.aggregate(first=Min("started_at"), last=Max("started_at"))

    span = statistics_query.statistics_of(Range("", ends["first"], ends["last"] + MINUTE, 1)).spans[0]

    assert span.is_cut
    assert span.counts.get("done", 0) <= 3


@pytest.mark.parametrize(("agents", "has_others"), [(7, False), (8, True)])
def test_no_single_agent_is_called_others(people, agents, has_others):
    turn = {"event": "model.call", "model": "m", "usage": {"input_tokens": 5, "output_tokens": 5}}
    log.append([toolcalls.event("many", turn | {"agent": f"Agent {n}"}) for n in range(agents)])

    html = words(client_of(people["viewer"]).get("/numbers/"))

    chart = html[html.index("Tokens by agent") :].partition("</figure>")[0]
    assert ("others" in chart) == has_others
    assert ("Agent 6" in chart) != has_others
