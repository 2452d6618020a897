"""What conversations and agents spend: sums that events add to, priced as far as known, the same after a rebuild."""

import json
import re
from decimal import Decimal
from importlib import import_module

import pytest
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from conversations.conversation import conversation_list, spending
from conversations.conversation.fork import fork
from conversations.core import model_prices, principals
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.events.log.refold_check import Differs, RefoldCheck
from conversations.events.log.sql import TURN
from conversations.models import Conversation, Event, ModelUsage, Turn
from conversations.runs.budgets import evaluate
from conversations.runs.budgets.evaluate import BudgetRule
from tests.support import held_run, teamwork
from tests.support.cast import client_of
from tests.support.unchecked import unchecked
from tests.support.visits import text_of

pytestmark = pytest.mark.django_db
MILLION = 1_000_000


@pytest.fixture
def claimed(people, settings, tmp_path):
    """A run at work, and two models whose prices are known: Dear and Cheap."""
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"dear": {"input": 4, "output": 8, "cached": 1}, "cheap": {"input": 1, "output": 1}}))
    settings.CONFIG = settings.CONFIG.model_copy(update={"prices": file})
    settings.CONFIG.__dict__.pop("price_table", None)
    teamwork.team()
    teamwork.say(people["operator"])
    return teamwork.claim()


def turn(claimed, model="dear", *, agent="Dialogue", ms=10.0, demo=False, **usage):
    body = {"event": "model.turn", "agent": agent, "turn": 1, "model": model, "demo": demo, "duration_ms": ms}
    log.append([claimed.event(body | {"usage": usage or None})])


def spent():
    return spending.of_conversation(Conversation.objects.get().pk)


def panel(people):
    return text_of(client_of(people["viewer"]).get("/conversations/flood/panel/"))


def test_tokens_cost_what_they_cost_and_cached_ones_less(claimed):
    turn(claimed, input_tokens=MILLION, output_tokens=MILLION, cached_tokens=MILLION // 2)
    turn(claimed, "cheap", input_tokens=MILLION, output_tokens=0)

    lines, total = spent()
    assert [(line.model, line.cost) for line in lines] == [("dear", "$10.50"), ("cheap", "$1.00")]
    assert (total.dollars, total.is_partial, total.words) == (Decimal("11.5"), False, "$11.50")
    assert spending.costs_of([Conversation.objects.get().pk]).popitem()[1] == total


WRITTEN = {
    "input_tokens": MILLION,
    "output_tokens": 0,
    "cached_tokens": MILLION // 4,
    "cache_write_tokens": MILLION // 2,
}


def test_tokens_written_to_a_cache_cost_what_that_costs(claimed, people):
    turn(claimed, "claude-sonnet-4-5", **WRITTEN)

    assert spent()[1].words == "$2.70"  # 3 / 0.30 / 3.75 dollars per million
    assert "$2.70" in text_of(client_of(people["viewer"]).get(reverse("numbers")))
    assert spending.of_agent("Dialogue").cost.words == "$2.70"
    rule = BudgetRule("b", "conversation", "", "cost", Decimal(1))
    assert evaluate._in_conversation(rule, "flood") == Decimal("2.7")


def test_an_operators_price_of_cache_writes_counts(claimed, settings):
    settings.CONFIG.price_table["dear"] = settings.CONFIG.price_table["dear"]._replace(cache_write=Decimal(5))
    turn(claimed, **WRITTEN)
    assert model_prices._price("m", {"input": 4, "output": 8}).cache_write == 4

    assert spent()[1].words == "$3.75"
    details = {"cached_tokens": MILLION // 4, "cache_write_tokens": MILLION // 2}
    payload = {"event": "output", "agent": "Robot", "model": "dear", "text": "hi"}
    usage = {"input_tokens": MILLION, "output_tokens": 1, "input_tokens_details": details}
    log.append([unchecked("flood", payload | {"usage": usage}, principals.token_principal("robot"))])
    assert Turn.objects.get(agent="Robot").cache_write_tokens == MILLION // 2


def test_what_is_partly_known_is_said_to_be_more_and_what_is_not_known_is_no_zero(claimed):
    turn(claimed, "of-nobody", input_tokens=9, output_tokens=9)
    assert spent()[1] == (None, True)

    turn(claimed, input_tokens=MILLION, output_tokens=0)
    assert spent()[1].words == "at least $4.00"


def test_a_turn_whose_tokens_nobody_told_makes_it_partly_known(claimed):
    turn(claimed)
    assert spent()[1] == (None, True)
    turn(claimed, input_tokens=MILLION, output_tokens=0)
    assert spent()[1].words == "at least $4.00"


def test_the_demo_model_costs_nothing_that_anybody_pays(claimed, people):
    turn(claimed, "demo", demo=True, input_tokens=MILLION, output_tokens=MILLION)

    assert spent()[1] == (None, False)
    assert spending.costs_of([Conversation.objects.get().pk]) == {}
    assert "Cost" not in panel(people)


def test_calls_and_time_are_counted_once_and_a_rebuild_finds_the_same(claimed):
    step = {"event": "tool_step", "name": "look_up", "agent": "Dialogue", "tool_call": "call-1", "tool_call_id": "c"}
    turn(claimed, input_tokens=1, output_tokens=1, ms=100)
    log.append([claimed.event(step | {"status": "start", "args_raw": "{}"})])
    inside = {"event": "model.turn", "agent": "Weather", "turn": 2, "model": "cheap", "parent_call": "call-1"}
    log.append([claimed.event(inside | {"duration_ms": 400, "usage": {"input_tokens": 5, "output_tokens": 0}})])
    log.append([claimed.event(step | {"status": "success", "output": "dry", "duration_ms": 500})])
    held_run.finish(claimed, {"event": "run.done"})
    payload = {"event": "output", "agent": "Robot", "model": "dear", "text": "hi"}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
    log.append([unchecked("flood", payload | {"usage": usage}, principals.token_principal("robot"))])
    rows = list(ModelUsage.objects.order_by("key").values())

    sums = {(row["agent"], row["model"]): (row["turns"], row["calls"], row["worked_ms"]) for row in rows}
    assert sums == {
        ("Dialogue", ""): (0, 1, 500),
        ("Dialogue", "dear"): (1, 0, 100),
        ("Robot", "dear"): (1, 0, 0),
        ("Weather", "cheap"): (1, 0, 0),
    }
    assert next(row for row in rows if row["agent"] == "Robot")["cached_tokens"] == 3
    list(rebuild())
    assert list(ModelUsage.objects.order_by("key").values()) == rows
    ModelUsage.objects.filter(agent="Weather").update(input_tokens=10**6)
    ModelUsage.objects.filter(agent="Robot").delete()
    list(rebuild())
    assert list(ModelUsage.objects.order_by("key").values()) == rows


def test_it_stands_in_the_panel_in_the_list_and_on_the_agents_page(claimed, people):
    turn(claimed, input_tokens=MILLION, output_tokens=0, cached_tokens=250_000)
    browser = client_of(people["viewer"])

    assert "1,000,000 in (250,000 cached), 0 out Cost $3.25" in panel(people)
    assert 'title="Cost: $3.25"' in browser.get("/").content.decode()
    assert "Tokens, last 24 h 1,000,000 in, 0 out Cost, last 24 h $3.25" in text_of(
        browser.get(reverse("agent", args=["Town Hall", "Dialogue"]))
    )
    turn(claimed, "of-nobody", input_tokens=5, output_tokens=5)
    assert "Cost at least $3.25" in panel(people)


def test_a_turn_whose_tokens_are_unknown_makes_its_agents_cost_partial(claimed):
    turn(claimed, input_tokens=MILLION, output_tokens=0)
    turn(claimed, agent="Weather")
    assert spending.of_agent("Dialogue").cost.words == "$4.00"

    turn(claimed)

    assert spending.of_agent("Dialogue").cost.words == "at least $4.00"


def test_statistics_count_turns_whose_tokens_are_unknown(claimed, people):
    turn(claimed, input_tokens=MILLION, output_tokens=0)
    turn(claimed)
    turn(claimed, agent="Weather")

    page = client_of(people["viewer"]).get("/numbers/?last=24h").content.decode()

    cells = re.findall(r'data-cell="(in|out|turns|cost)">(.*?)</td>', page)
    texts = [(name, " ".join(re.sub("<[^>]+>", " ", cell).split())) for name, cell in cells]
    assert texts == [
        *[("in", "1,000,000+"), ("out", "0+"), ("turns", "2 1 unknown"), ("cost", "$4.00+")],
        *[("in", "–"), ("out", "–"), ("turns", "1 1 unknown"), ("cost", "–")],
    ]
    assert "1,000,000 tokens by 1 agent; unknown for 2 turns" in page
    assert "<dt>Tokens</dt><dd>1 M+</dd>" in page


def test_an_agents_page_says_of_how_many_turns_the_tokens_are_unknown(claimed, people):
    turn(claimed, input_tokens=1, output_tokens=2)
    turn(claimed)

    page = text_of(client_of(people["viewer"]).get(reverse("agent", args=["Town Hall", "Dialogue"])))

    assert "1 in, 2 out unknown for 1 of 2 turns" in page


def test_a_turn_from_before_whose_tokens_are_unknown_gets_its_row(claimed):
    turn(claimed)
    turn(claimed, input_tokens=5, output_tokens=1)
    turn(claimed, "", agent="Weather", demo=True)
    before = list(Turn.objects.order_by("seq").values_list(*TURN.split(",")))
    Turn.objects.filter(input_tokens=0).delete()

    import_module("conversations.migrations.0026_unknown_turns").fill(apps, None)

    assert list(Turn.objects.order_by("seq").values_list(*TURN.split(","))) == before


def forked_with_turns(claimed, people):
    """Fork a conversation of a known and an unknown turn, and add an unknown one; return the fork and its number."""
    turn(claimed, input_tokens=5, output_tokens=1)
    turn(claimed)
    parent = Conversation.objects.get()
    made = fork(people["operator"], parent.key, parent.head_seq).conversation
    body = {"event": "model.turn", "run_id": "r2", "agent": "Dialogue", "turn": 1, "model": "dear", "usage": None}
    (own,) = log.append([log.from_internal(made, body, principals.run_principal("Dialogue"))])
    return Conversation.objects.get(key=made), own.seq


def test_only_a_forks_own_turns_from_before_get_rows(claimed, people):
    made, own = forked_with_turns(claimed, people)
    Turn.objects.filter(conversation=made).delete()

    import_module("conversations.migrations.0026_unknown_turns").fill(apps, None)

    assert list(Turn.objects.filter(conversation=made).values_list("seq", flat=True)) == [own]
    RefoldCheck(made.pk, made.key).run()


def test_rows_that_copied_turns_were_given_are_deleted(claimed, people):
    made, own = forked_with_turns(claimed, people)
    before = list(Turn.objects.order_by("conversation", "seq").values_list(*TURN.split(",")))
    row = {"agent": "Dialogue", "model": "dear", "input_tokens": 0, "output_tokens": 0, "run": claimed.run}
    for seq in Event.objects.filter(conversation=made, kind="model.turn", seq__lt=own).values_list("seq", flat=True):
        Turn.objects.create(conversation=made, seq=seq, at=1, **row)
    with pytest.raises(Differs):
        RefoldCheck(made.pk, made.key).run()

    with connection.cursor() as cursor:
        cursor.execute(import_module("conversations.migrations.0029_copied_turns").DELETE)

    assert list(Turn.objects.order_by("conversation", "seq").values_list(*TURN.split(","))) == before
    RefoldCheck(made.pk, made.key).run()


def test_an_agents_day_is_read_within_a_bound(claimed, monkeypatch):
    monkeypatch.setattr(spending, "TURNS", 2)
    for _ in range(3):
        turn(claimed, input_tokens=MILLION, output_tokens=0)

    spent = spending.of_agent("Dialogue")
    assert (spent.turns, spent.input_tokens, spent.cost.words, spent.is_cut) == (2, 2 * MILLION, "at least $8.00", True)


def test_the_list_asks_once_for_all_its_rows(claimed, people):
    for n in range(5):
        teamwork.say(people["operator"], f"c{n}", client_id=f"x{n}")
    with CaptureQueriesContext(connection) as captured:
        conversation_list.newest_rows()
    assert sum("modelusage" in query["sql"] for query in captured) == 1


def test_the_statistics_page_counts_cached_input_alike_in_sum_and_table(claimed, people):
    turn(claimed, input_tokens=MILLION, output_tokens=MILLION, cached_tokens=MILLION // 2)

    page = text_of(client_of(people["viewer"]).get("/numbers/?last=1h"))

    assert page.count("$10.50") == 2
