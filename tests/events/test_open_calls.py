"""A tool step finds the call that it ends, or the use of its id, at the same cost however many calls are open."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.core import principals
from conversations.events import log
from conversations.events.log.rebuild import rebuild
from conversations.models import Conversation, ToolCall
from tests.support.growth import database_reads
from tests.support.tiers import rounds
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db
ROBOT = principals.token_principal("robot")
FEW, MANY = 100, rounds(1_000, 10_000)
STEPS = {
    "a result without a call id": (None, "success", ROBOT, None),
    "a result of an id used again and again": ("same", "success", ROBOT, None),
    "one more use of an id": ("same", "start", ROBOT, None),
    "a result of an id of its own": ("n7", "success", ROBOT, None),
    "a result of a run without a call id": (None, "success", principals.SYSTEM, "r"),
}


def step(key, call_id, status, principal=ROBOT, run=None):
    step = {"event": "tool_step", "name": "look_up", "agent": "agent:A", "status": status}
    fields = {name: value for name, value in (step | {"tool_call_id": call_id, "run_id": run}).items() if value}
    return unchecked(key, fields, principal)


def open_calls(key, count):
    """Make a conversation with so many open calls of each kind."""
    log.append([step(key, None, "start", *who) for _ in range(2) for who in ((), (principals.SYSTEM, f"{key}-r"))])
    made = Conversation.objects.get(key=key)
    model = ToolCall.objects.filter(conversation=made, run=None).first()
    rows = []
    for n in range(count):
        seq = 10 + 4 * n
        for at, (call_id, run) in enumerate([(None, None), ("same", None), (f"n{n}", None), (None, f"{key}-r")]):
            names = {"id": f"{key}-{n}-{at}", "call_id": call_id, "nth": n + 1 if call_id == "same" else 1, "run": run}
            rows.append(ToolCall(**values_of(model) | names | {"called_seq": seq + at}))
    ToolCall.objects.bulk_create(rows, batch_size=1_000)


def values_of(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def work_of(event):
    """Return how much the database did to store one event."""
    return database_reads(lambda: log.append([event]), "conversations_toolcall")


@pytest.mark.slow
@pytest.mark.parametrize("is_analysed", [False, True], ids=["before statistics", "with statistics"])
def test_a_step_costs_the_same_at_many_open_calls(is_analysed):
    open_calls("few", FEW)
    open_calls("many", MANY)
    if is_analysed:
        connection.cursor().execute("ANALYZE")

    for what, (call_id, status, principal, run) in STEPS.items():
        few, many = (work_of(step(key, call_id, status, principal, run and f"{key}-{run}")) for key in ("few", "many"))
        assert many <= 2 * few + 20, what


def test_each_of_many_steps_of_one_batch_finds_its_own():
    ids = [f"n{n}" for n in range(1_000)]
    log.append([step("a", call_id, "start") for call_id in [*ids, *ids]])
    log.append([step("a", call_id, "success") for call_id in [*reversed(ids), *["n3"] * 2]])

    ended = dict(ToolCall.objects.filter(finished_seq__isnull=False).values_list("finished_seq", "called_seq"))
    assert ended == {2_001 + n: 1_000 - n for n in range(1_000)} | {3_001: 1_004, 3_002: 3_002}
    assert list(ToolCall.objects.filter(call_id="n3").order_by("called_seq").values_list("nth", flat=True)) == [1, 2, 3]


def test_a_run_and_a_foreign_agent_do_not_end_each_others_calls():
    log.append([step("a", "x", "start"), step("a", "x", "start", principals.SYSTEM, "r"), step("a", None, "start")])

    log.append([step("a", "x", "success", principals.SYSTEM, "r"), step("a", None, "success", principals.SYSTEM, "r")])

    assert list(ToolCall.objects.order_by("called_seq").values_list("called_seq", "finished_seq")) == [
        (1, None), (2, 4), (3, None), (5, 5),
    ]  # fmt: skip
    before = list(ToolCall.objects.order_by("id").values())
    list(rebuild())
    assert list(ToolCall.objects.order_by("id").values()) == before


def test_calls_of_many_conversations_are_looked_up_at_once():
    def reads(keys):
        with CaptureQueriesContext(connection) as queries:
            log.append([step(key, "an id of its own", status) for key in keys for status in ("start", "success")])
        return sum("conversations_toolcall" in query["sql"] and "SELECT" in query["sql"] for query in queries)

    assert reads(["one"]) == reads([f"many-{n}" for n in range(20)]) == 1


def test_each_conversation_ends_its_own_call():
    keys = [f"own-{n}" for n in range(3)]
    log.append([step(key, "the same id", "start") for key in keys])

    log.append([step(key, "the same id", "success") for key in keys[:2]])

    assert set(ToolCall.objects.filter(status="done").values_list("conversation__key", flat=True)) == set(keys[:2])
    assert set(ToolCall.objects.filter(status="executing").values_list("conversation__key", flat=True)) == {keys[2]}
