"""The timeline of external programs: a row for each run, at the times of its spans, with its calls within."""

import re
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User

from conversations.access.authentication import Caller
from conversations.asgi import telemetry
from conversations.core import principals
from conversations.core.micros import to_micros
from conversations.events import log
from conversations.events.log import timeline_reads
from conversations.models import Conversation
from conversations.rendering import chrome_trace, conversation_timeline
from conversations.rendering.timeline_rows import TimelineRow
from conversations.telemetry import intake, otlp_protobuf
from tests.support.cast import client_of
from tests.support.otlp import NOW, span, traces
from tests.support.unchecked import unchecked
from tests.telemetry.test_genai import weather

pytestmark = pytest.mark.django_db

COLLECTOR = Caller(principals.token_principal("collector"), frozenset({"telemetry"}))
PROGRAM = principals.token_principal("program")
SAID = {"sender": "agent:Black", "recipient": "agent:White", "type": "message"}


def rows(key: str = "c") -> list[TimelineRow]:
    conversation = Conversation.objects.get(key=key)
    return conversation_timeline.layout(timeline_reads.read(conversation.pk, key, conversation.head_seq)).rows


def tell(*bodies: dict[str, object], by: principals.Principal = PROGRAM) -> None:
    """Record what a program says."""
    log.append([unchecked("c", {"id": str(n), **body}, by, bus_id=str(n)) for n, body in enumerate(bodies)])


def send(*spans: object) -> None:
    """Record spans."""
    read = intake.of_spans(otlp_protobuf.traces(traces(*spans)).spans, intake.Memory())
    events, _, _ = telemetry._events_of(read, COLLECTOR)
    log.append(events)


def test_spans_are_drawn_at_their_own_times_within_their_run() -> None:
    agent = {"gen_ai.conversation.id": "c", "gen_ai.agent.name": "Coder"}
    run = span("run", agent | {"gen_ai.operation.name": "invoke_agent"}, number=1, start=0, took=60)
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "bash",
        "gen_ai.tool.call.id": "call-0123456789",
    }
    send(run, span("tool", agent | tool, number=2, parent=1, start=10, took=20))

    began = NOW // 1000
    drawn = [
        (row.kind, row.depth, row.name, (row.start - began) / 1e6, ((row.end or 0) - began) / 1e6) for row in rows()
    ]

    assert drawn == [("run", 0, "agent:Coder", 0, 60), ("agent", 1, "agent:Coder", 0, 60), ("call", 2, "bash", 10, 30)]


def test_a_real_trace_has_its_run_with_calls_and_turns() -> None:
    send(*weather("c"))

    run, agent = (next(row for row in rows() if row.kind == kind) for kind in ("run", "agent"))

    assert (run.words, run.state, len(agent.turns)) == ("external run", "done", 2)
    assert [row.depth for row in rows() if row.kind == "call"] == [2]


@pytest.mark.parametrize(
    ("end", "state", "is_over"),
    [("run.done", "done", 1), ("run.failed", "failed", 1), ("run.waiting", "waiting", 0), (None, "running", 0)],
)  # fmt: skip
def test_a_watched_run_is_drawn_as_it_ended(end, state, is_over) -> None:
    begun: dict[str, object] = {"event": "run.started", "agent": "Coder", "run_id": "r"}
    tell(begun, *([{"event": end, "agent": "Coder", "run_id": "r"}] if end else []))

    (run, _) = rows()

    assert (run.name, run.state, run.end is not None) == ("agent:Coder", state, bool(is_over))


def test_calls_after_a_handoff_are_within_the_run() -> None:
    step: dict[str, object] = {"event": "tool_step", "agent": "Helper", "name": "bash", "tool_call_id": "t"}
    tell(
        {"event": "run.started", "agent": "Coder", "run_id": "r"},
        {"event": "agent.handoff", "agent": "Coder", "from_agent": "Coder", "to_agent": "Helper", "run_id": "r"},
        step | {"status": "start"}, step | {"status": "success"},
        {"event": "run.done", "agent": "Coder", "run_id": "r"},
    )  # fmt: skip

    assert [(row.kind, row.depth) for row in rows()] == [("run", 0), ("agent", 1), ("call", 2)]


def test_an_imported_run_without_an_end_is_over() -> None:
    at = datetime(2025, 11, 20, tzinfo=UTC)
    began = {"event": "run.started", "agent": "Coder", "run_id": "r", "created_at": at.isoformat()}
    tell(began, by=principals.import_principal("file"))

    (run, _) = rows()

    assert (run.words, run.state, run.start, run.end) == ("imported run", "unknown", to_micros(at), to_micros(at))


def test_a_record_without_times_is_drawn_in_the_order_of_its_events(team: dict[str, User]) -> None:
    step = {"event": "tool_step", "agent": "White", "name": "make_move", "tool_call_id": "t"}
    bodies = (SAID | {"content": "Your move."}, step | {"status": "start"}, step | {"status": "ok"})
    tell(*bodies, SAID | {"content": "e4"}, by=principals.import_principal("file"))

    drawn = [(row.kind, row.start, row.end) for row in rows()]
    page = client_of(team["viewer"]).get("/conversations/c/?view=timeline").content.decode()

    assert drawn == [("message", 1, 1), ("call", 2, 3), ("message", 4, 4)]
    assert "In the order of the events: this record has no times." in page
    assert re.findall(r'class="took">([^<]*)<', page) == ["Event", "1", "2", "4"]


def test_a_message_that_names_another_output_hides_none() -> None:
    answer = {"event": "output", "agent": "Coder", "text": "Done."}
    between = {"event": "tool_step", "agent": "Coder", "name": "look", "status": "start"}
    tell(answer, between, SAID | {"content": "Something else.", "metadata": {"output_id": "elsewhere"}})

    assert [row.words for row in rows() if row.kind == "message"] == ["Done.", "Something else."]


def test_a_failed_model_call_in_no_run_is_among_the_failures() -> None:
    tell({"event": "model.call", "agent": "Coder", "model": "m", "error": "overloaded", "duration_ms": 500})

    read = timeline_reads.read(Conversation.objects.get().pk, "c", 1)

    assert [row.state for row in conversation_timeline.layout(read, failures=True).rows] == ["failed"]


def test_durations_count_for_nothing_where_a_record_has_no_times() -> None:
    tell({"event": "model.call", "agent": "Coder", "duration_ms": 500}, by=principals.import_principal("file"))

    assert [(row.start, row.end) for row in rows()] == [(1, 1)]


def test_a_record_with_a_time_is_drawn_along_time() -> None:
    at = datetime(2025, 11, 20, tzinfo=UTC)
    tell(SAID | {"content": "Your move.", "created_at": at.isoformat()}, by=principals.import_principal("file"))

    assert rows()[0].start == to_micros(at)


def test_model_calls_and_outputs_in_no_run_have_rows() -> None:
    turn = {"event": "model.call", "agent": "Coder", "model": "m", "duration_ms": 2000}
    answer: dict[str, object] = {"event": "output", "agent": "Coder", "text": "Done."}
    echo = {"type": "message", "sender": "agent:Coder", "recipient": "user:maria", "content": "Done."}
    more, begun = {**answer, "text": "And more."}, {"event": "run.started", "agent": "Coder", "run_id": "r"}
    tell(turn, answer, echo, more)
    tell({**begun, "id": "begun"}, {**answer, "id": "within"})

    events = timeline_reads.read(Conversation.objects.get().pk, "c", 6)
    read = conversation_timeline.layout(events)

    drawn = [(row.kind, row.depth, row.name, row.words, row.seq) for row in read.rows]
    assert drawn == [
        ("agent", 0, "agent:Coder", "", 1),
        ("message", 0, "agent:Coder", "Done.", 3),
        ("message", 0, "agent:Coder", "And more.", 4),
        ("run", 0, "agent:Coder", "external run", 5),
        ("agent", 1, "agent:Coder", "", 5),
    ]
    assert read.totals.models == 2_000_000
    assert read.totals.whole >= 2_000_000
    assert [part.name for part in chrome_trace._slices(events, read)].count("model turn") == 1


def test_a_call_of_another_agent_stays_by_itself() -> None:
    step: dict[str, object] = {"event": "tool_step", "agent": "Other", "name": "bash", "tool_call_id": "t"}
    tell({"event": "run.started", "agent": "Coder", "run_id": "r"}, step | {"status": "start"})

    assert [(row.kind, row.depth) for row in rows()] == [("run", 0), ("agent", 1), ("call", 0)]
