"""After a restart, and with several processes, a trace stays one conversation and its tokens are counted once."""

import threading

import pytest
from django.db import connection

from conversations.asgi.telemetry import TelemetryEndpoint
from conversations.models import Conversation, TelemetryTrace, Turn
from conversations.telemetry import trace_rows
from tests.support.otlp import PROTOBUF, span, traces
from tests.support.response_desk import Asking, Desk
from tests.telemetry.test_answer_counting import BETWEEN, INNER, OUTER, RIGHT_WITHIN
from tests.telemetry.test_genai import weather
from tests.telemetry.test_late_names import TRACE, unnamed

pytestmark = pytest.mark.django_db(transaction=True)


class Processes:
    """Endpoints over one database, each with a memory of its own."""

    def __init__(self):
        self._desk, self._endpoints = Desk("telemetry"), []

    def start(self):
        """Start a process; return what sends it spans."""
        endpoint = TelemetryEndpoint(self._desk.runtime, self._desk.authenticator)
        self._endpoints.append(endpoint)

        async def sending(spans):
            head = {"authorization": f"Bearer {self._desk.token}", "content-type": PROTOBUF}
            asking = Asking(traces(*spans), "POST", "/v1/traces", head)
            await endpoint(asking.scope, asking.receive, asking.send)
            return asking.sent[0]["status"]

        def send(*spans):
            assert self._desk.run(lambda: sending(spans)) == 200

        return send

    def close(self):
        """End the threads."""
        for endpoint in self._endpoints:
            for threads in (endpoint._reader, endpoint._notes):
                threads.submit(lambda: connection.close())  # the thread's own
                threads.shutdown(wait=True)
        self._desk.close()


@pytest.fixture
def processes(transactional_db):
    made = Processes()
    yield made
    made.close()


def keys():
    return set(Conversation.objects.visible().values_list("key", flat=True))


def tokens():
    return sum(Turn.objects.filter(conversation__is_staged=False).values_list("input_tokens", flat=True))


def test_a_trace_named_before_a_restart_stays_together(processes):
    spans = unnamed(weather("named", trace=77))
    processes.start()(spans[3])

    processes.start()(*spans[:3])

    assert keys() == {"named"}
    assert tokens() == 194


def test_spans_that_two_processes_take_by_turns_are_one_conversation(processes):
    spans, first, other = unnamed(weather("named", trace=77)), processes.start(), processes.start()

    first(spans[0])
    other(spans[3])
    first(spans[1])
    other(spans[2])

    assert keys() == {"named"}
    assert tokens() == 194


@pytest.mark.parametrize("order", [(OUTER, BETWEEN, INNER), (INNER, BETWEEN, OUTER)], ids=["outer", "inner"])
def test_tokens_of_one_answer_count_once_across_restarts(processes, order):
    for each in order:
        processes.start()(each)

    assert tokens() == 97


@pytest.mark.parametrize("first", [OUTER, RIGHT_WITHIN], ids=["outer", "inner"])
def test_tokens_of_one_answer_count_once_in_two_processes(processes, first):
    (second,) = {1: [RIGHT_WITHIN], 4: [OUTER]}[first.span_id[-1]]
    process, other = processes.start(), processes.start()

    process(first)
    other(second)
    process(second)

    assert tokens() == 97


def test_an_erased_id_is_the_conversation_of_later_spans(processes):
    spans = unnamed(weather("named", trace=77))
    processes.start()(spans[3])
    Conversation.objects.filter(key="named").update(key="erased-1")

    processes.start()(*spans[:3])

    assert keys() == {"erased-1"}


def test_a_trace_that_is_no_agents_has_no_row(processes):
    processes.start()(span("GET", {"http.request.method": "GET"}, trace=77))

    assert not TelemetryTrace.objects.exists()


@pytest.mark.slow
def test_a_trace_whose_conversation_is_gone_begins_anew(processes):
    spans = unnamed(weather("named", trace=77))
    processes.start()(spans[3])
    Conversation.objects.filter(key="named").update(is_staged=True)

    processes.start()(*spans[:3])

    assert TRACE in keys()


def test_a_request_is_read_while_the_rows_of_anothers_traces_wait_to_be_written(processes, monkeypatch):
    is_waiting, is_free = threading.Event(), threading.Event()

    def save(_rows):
        is_waiting.set()
        is_free.wait(60)

    monkeypatch.setattr(trace_rows, "save", save)
    send = processes.start()
    first = threading.Thread(target=send, args=weather("waits", trace=5))
    first.start()
    try:
        assert is_waiting.wait(20)

        send(span("GET", {"http.request.method": "GET"}, trace=6))

        assert first.is_alive()
    finally:
        is_free.set()
        first.join()
