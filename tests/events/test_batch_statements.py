"""A batch of many runs' events takes as many statements as one of two: each gives up the interpreter's lock."""

from contextlib import contextmanager

import pytest
from django.db import IntegrityError, connection
from django.test.utils import CaptureQueriesContext

from conversations.core import principals
from conversations.core.errors import Fenced
from conversations.events import log
from conversations.models import Agent, Run, ToolCall
from conversations.runs import claims
from tests.support.claiming import served_agents
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def clerk():
    Agent.objects.create(team="town", name="Clerk", is_entry=True)


def claimed_runs(prefix, count):
    """Begin a run in each of so many conversations; return the claims in the order of their conversations."""
    for n in range(count):
        body = {"type": "message", "sender": "Rosa", "recipient": "agent:Clerk", "content": "hello"}
        log.append([unchecked(f"{prefix}-{n}", body, principals.token_principal("robot"), topic=f"chat:{prefix}-{n}")])
    claimed = claims.claim("host:1", served_agents("town", "Clerk"), at_most=count)
    return sorted(claimed, key=lambda claim: claim.conversation)


def step_of(claim, **fields):
    """Return a step of a run's only call."""
    return {"event": "tool_step", "name": "add", "tool_call": f"of-{claim.run}"[:36], "tool_call_id": "c1"} | fields


@contextmanager
def counted():
    """Collect the statements of this thread's connection."""
    statements = []
    if connection.vendor == "sqlite":  # most do not pass Django's cursor there
        connection.ensure_connection()
        connection.connection.set_trace_callback(statements.append)
        yield statements
        connection.connection.set_trace_callback(None)
        return
    with CaptureQueriesContext(connection) as queries:
        yield statements
    statements += [query["sql"] for query in queries]


def of_a_turn(held):
    """Store what a turn of these runs brings, each in one batch with the others': a call, its output, the run's end."""
    log.append([claim.event(step_of(claim, status="start")) for claim in held])
    log.append([claim.event(step_of(claim, status="success", output="5", duration_ms=1.5)) for claim in held])
    log.append([claim.event({"event": "run.done"}) for claim in held])


def test_many_runs_take_no_more_statements_than_two():
    few, many = claimed_runs("few", 2), claimed_runs("many", 8)

    with counted() as of_few:
        of_a_turn(few)
    with counted() as of_many:
        of_a_turn(many)

    assert len(of_many) == len(of_few) > 10, "\n".join(of_many)
    assert set(Run.objects.values_list("status", flat=True)) == {"done"}
    calls = ToolCall.objects.values_list("status", "duration_ms", "output_bytes", "approver", "duration_class")
    assert set(calls) == {("done", 1.5, 1, None, 4)}


def test_calls_end_as_their_own_events_say():
    held = claimed_runs("own", 3)
    log.append([claim.event(step_of(claim, status="start")) for claim in held])

    ends = [{"duration_ms": 250.25}, {"output": "abc"}, {}]
    log.append([c.event(step_of(c, status="success") | end) for c, end in zip(held, ends, strict=True)])

    rows = ToolCall.objects.order_by("conversation").values_list("duration_ms", "output_bytes", "finished_seq")
    assert [row[:2] for row in rows] == [(250.25, None), (None, 3), (None, None)]
    assert None not in {row[2] for row in rows}


def test_a_lost_run_among_many_is_named():
    held = claimed_runs("fenced", 5)
    Run.objects.filter(id=held[3].run).update(attempt=2)

    with pytest.raises(Fenced, match=rf"run {held[3].run} is no longer running in attempt 1"):
        log.append([claim.event({"event": "run.done"}) for claim in held])


def test_a_run_cannot_end_a_call_of_another_conversation():
    mine, other = claimed_runs("apart", 2)
    log.append([mine.event(step_of(mine, status="start"))])

    with pytest.raises(IntegrityError):
        log.append([other.event(step_of(mine, status="success")), mine.event({"event": "output", "text": "five"})])

    assert ToolCall.objects.get().finished_seq is None
