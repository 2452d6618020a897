"""Our runs at a collector: each once, whatever the collector and the server do meanwhile."""

import json
import threading
import time

import pytest
from agents import function_tool
from agents.testing import assistant_message, function_call

from conversations.models import Event, ToolCall
from conversations.telemetry_export import cursor, exporter
from conversations.telemetry_export.exporter import Exporter
from tests.support.agents_running import ended_runs, send_message, team, working
from tests.support.alerting import receiving
from tests.support.collecting import Collector, partly, ran
from tests.support.live import free_port, until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(exporter, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(exporter, "MAX_PAUSE", 0.2)
    monkeypatch.setattr(exporter, "POLL_EVERY_S", 0.05)


@pytest.fixture
def collector():
    with receiving(Collector()) as collector:
        yield collector


def set_up(settings, collector, **changes):
    changes = {"otlp_endpoint": collector.endpoint, "otlp_timeout_s": 5.0, **changes}
    settings.CONFIG = settings.CONFIG.model_copy(update=changes)
    settings.CONFIG.__dict__.pop("otlp_header_fields", None)


class Exporting:
    """An exporter for as long as the block."""

    def __enter__(self):
        self.thread = Exporter()
        self.thread.start()
        until(cursor.read, what="the export to begin")
        return self.thread

    def __exit__(self, *_):
        self.thread.close()
        assert not self.thread.is_alive()


def arrived(collector, runs):
    until(lambda: set(runs) <= set(collector.runs()), what=f"{len(runs)} runs to arrive")


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_a_run_of_a_team_is_a_trace(settings, collector):
    set_up(settings, collector, otlp_headers="api-key=s%3Dcret, x-tenant=a")
    steps = [function_call("add", {"a": 2, "b": 3}, call_id="c1")], [assistant_message("It is five.")]

    with Exporting(), working(team(*steps, tools=[add])):
        send_message("What is two and three?")
        (run,) = ended_runs()
        arrived(collector, [run.id])

    root, *others = collector.spans()
    assert sorted(span.name.split()[0] for span in others) == ["chat", "chat", "execute_tool"]
    assert {span.trace for span in others} == {root.trace}
    assert {span.parent for span in others} == {root.id}
    assert (root.name, root.parent, root.attributes["gen_ai.conversation.id"]) == ("invoke_agent Clerk", b"", "c")
    (call,) = [span for span in others if span.name == "execute_tool add"]
    assert (call.attributes["gen_ai.tool.call.id"], call.attributes["gen_ai.tool.type"]) == ("c1", "function")
    turns = Event.objects.filter(kind="model.turn").values_list("body", flat=True)
    tokens = [json.loads(body)["usage"] or {} for body in turns]
    input_tokens = [
        span.attributes.get("gen_ai.usage.input_tokens", 0) for span in others if span.name.startswith("chat")
    ]
    assert sum(input_tokens) == sum(spent.get("input_tokens", 0) for spent in tokens)
    for span in (root, *others):
        assert 0 < span.span.start_time_unix_nano <= span.span.end_time_unix_nano
        assert not any("messages" in name or "arguments" in name or "result" in name for name in span.attributes)
    (post,) = collector.posts
    assert (post.headers["api-key"], post.headers["x-tenant"]) == ("s=cret", "a")


@pytest.mark.parametrize("wrong", [1 << 63, 7.0, "7", [7], -1])
def test_a_count_of_tokens_that_is_none_is_left_out_and_holds_up_no_run(settings, collector, wrong):
    set_up(settings, collector)
    with Exporting():
        spent = {"input_tokens": wrong, "output_tokens": 3, "cached_tokens": wrong}
        runs = [ran(spent=spent), ran()]
        arrived(collector, runs)

    turns = [span.attributes for span in collector.spans() if span.name.startswith("chat")]
    assert sorted(turn.get("gen_ai.usage.input_tokens", 0) for turn in turns) == [0, 7]
    assert [turn["gen_ai.usage.output_tokens"] for turn in turns] == [3, 3]


def test_content_is_sent_where_it_is_asked_for(settings, collector):
    set_up(settings, collector, otlp_content=True)
    steps = [function_call("add", {"a": 2, "b": 3}, call_id="c1")], [assistant_message("It is five.")]

    with Exporting(), working(team(*steps, tools=[add])):
        send_message("What is two and three?")
        (run,) = ended_runs()
        arrived(collector, [run.id])

    root, *others = collector.spans()
    question, answered = (json.loads(root.attributes[f"gen_ai.{side}.messages"]) for side in ("input", "output"))
    assert question == [{"role": "user", "parts": [{"type": "text", "content": "What is two and three?"}]}]
    assert answered[0]["parts"] == [{"type": "text", "content": "It is five."}]
    (call,) = [span for span in others if span.name == "execute_tool add"]
    assert json.loads(call.attributes["gen_ai.tool.call.arguments"]) == {"a": 2, "b": 3}
    assert call.attributes["gen_ai.tool.call.result"] == "5"
    assert any("It is five." in span.attributes.get("gen_ai.output.messages", "") for span in others)


def test_a_failed_run_and_a_call_without_an_end_say_so(settings, collector):
    set_up(settings, collector)

    with Exporting():
        failed = ran(end="run.failed", reason="error", error="the words are a secret", calls=0)
        arrived(collector, [failed])

    (root,) = [span for span in collector.spans() if span.name.startswith("invoke")]
    assert root.attributes["error.type"] == "error"
    assert (root.span.status.code, root.span.status.message) == (2, "error")


@pytest.mark.slow
def test_nothing_is_lost_or_doubled_while_a_collector_fails_stalls_and_restarts(settings):
    port = free_port()
    runs = []

    with receiving(Collector(port)) as first:
        set_up(settings, first, otlp_timeout_s=0.3)
        first.answers = [503, 429, "drop", "stall", 500, 404, 401]
        with Exporting() as thread:
            runs += [ran() for _ in range(5)]
            arrived(first, runs)
            until(lambda: thread.state == "ok")
            exported_runs = first.runs()
    with Exporting():
        runs += [ran() for _ in range(5)]
        until(lambda: "does not take them" in cursor.read().trouble, what="the exporter to miss its collector")
        with receiving(Collector(port)) as second:
            arrived(second, runs[5:])
            until(lambda: cursor.read().runs == 10)
            exported_runs += second.runs()

    assert exported_runs == dict.fromkeys(runs, 1)
    assert (cursor.read().trouble, cursor.read().refused) == ("", 0)


def test_what_ended_while_no_server_ran_is_sent_by_the_next_one(settings, collector):
    set_up(settings, collector)
    before = ran()
    with Exporting():
        pass
    meanwhile = [ran() for _ in range(3)]

    with Exporting():
        arrived(collector, meanwhile)
    with Exporting():
        later = ran()
        arrived(collector, [later])

    assert collector.runs() == dict.fromkeys([*meanwhile, later], 1), "the first export begins when it is set up"
    assert before not in collector.runs()


def test_a_run_that_is_refused_for_good_costs_no_other(settings, collector):
    set_up(settings, collector)
    with Exporting():
        pass
    runs = [ran(f"c{n}") for n in range(6)]
    collector.refused = runs[3]

    with Exporting():
        until(lambda: cursor.read().runs == 5)

    assert collector.runs() == dict.fromkeys({*runs} - {runs[3]}, 1)
    assert (cursor.read().refused, cursor.read().refusal) == (3, "HTTP 400")


def test_spans_that_a_collector_refuses_are_counted_with_its_words(settings, collector):
    set_up(settings, collector)
    collector.body = partly(2, "too old")

    with Exporting():
        ran()
        place = until(lambda: (now := cursor.read()).refused and now)

    assert (place.refused, place.refusal, place.runs) == (2, "too old", 1)


def test_a_stalling_collector_keeps_neither_a_run_nor_the_stop(settings, collector):
    set_up(settings, collector, otlp_timeout_s=50.0)
    collector.answers = ["stall"] * 9

    with Exporting():
        ran()
        until(lambda: collector.requests)
        with working(team([assistant_message("Good day.")])):
            send_message()
            ended_runs()
        began = time.monotonic()

    assert time.monotonic() - began < 20, "a request under way is broken off"
    assert not any(thread.name == "telemetry-export" for thread in threading.enumerate())


@pytest.mark.slow
def test_many_runs_go_in_requests_of_a_bounded_size(settings, collector, monkeypatch):
    monkeypatch.setattr(exporter, "MAX_SPANS", 20)
    set_up(settings, collector)
    with Exporting():
        pass
    runs = [ran(f"c{n % 3}", calls=4) for n in range(30)]

    with Exporting():
        arrived(collector, runs)

    assert collector.runs() == dict.fromkeys(runs, 1)
    assert len(collector.posts) >= 10
    assert sum(span.name == "execute_tool add" for span in collector.spans()) == ToolCall.objects.count() == 120
    assert len({span.id for span in collector.spans()}) == len(collector.spans()) == 180


def test_an_exporter_that_was_overtaken_moves_nothing_back():
    """One whose lease ended while it waited for the collector: the other one's place and figures stay."""
    begun = cursor.begin()
    ahead = begun.to(row=begun.row + 5, runs=5)

    assert cursor.move(begun, ahead)
    assert not cursor.move(begun, begun.to(row=begun.row + 1, runs=1))
    assert cursor.read() == ahead


@pytest.mark.slow
def test_no_more_spans_are_built_ahead_than_one_request_holds(settings, collector, monkeypatch):
    class Counting(Exporter):
        sizes, sent, most = [], 0, 0  # bytes of the spans of each run, runs sent, bytes held at a time

        def _spans_of(self, end):
            run = super()._spans_of(end)
            self.sizes.append(sum(span.ByteSize() for span in run.spans))
            self.most = max(self.most, sum(self.sizes[self.sent :]))
            return run

        def _send(self, runs):
            self.sent += len(runs)
            return super()._send(runs)

    set_up(settings, collector)
    with Exporting():
        pass
    runs = [ran(f"c{n % 3}", calls=4) for n in range(30)]
    monkeypatch.setattr(exporter, "MAX_BYTES", 10_000)

    thread = Counting()
    thread.start()
    arrived(collector, runs)
    thread.close()

    assert collector.runs() == dict.fromkeys(runs, 1)
    assert sum(thread.sizes) > 40_000
    assert thread.most <= 10_000 + max(thread.sizes)
