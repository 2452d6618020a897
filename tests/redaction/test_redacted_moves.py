"""A redaction beside the move of a trace whose conversation is named late."""

import threading
import time

import pytest
from django.db import connection

from conversations.core.errors import NotFound
from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.redaction import expiry
from conversations.redaction.redact import redact
from conversations.telemetry import intake, late_names
from conversations.telemetry.otlp_protobuf import traces as decoded
from tests.redaction.test_redact import everywhere
from tests.support.otlp import traces
from tests.telemetry.test_genai import weather
from tests.telemetry.test_late_names import COLLECTOR, TRACE, store, unnamed

WORD = "Paris"  # in what the trace tells


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("by", ["request", "expiry"])
def test_a_trace_that_has_moved_keeps_no_title_of_what_is_redacted(by):
    store(intake.Memory(), *decoded(traces(*unnamed(weather("named", trace=77))[:3])).spans)
    late_names.move(TRACE, "named", COLLECTOR)
    seqs = [event.seq for event in log.read_after("named", 0)]

    if by == "request":
        redact(SYSTEM, "named", seqs, "asked for")
    else:
        expiry.expire(SYSTEM, expiry.RetentionScope(time.time_ns() // 1000), "all", lambda *_: None)

    assert everywhere(WORD) == []


@pytest.mark.django_db(transaction=True)
def test_words_that_are_redacted_while_their_trace_moves_do_not_come_back(monkeypatch):
    memory, spans = intake.Memory(), unnamed(weather("named", trace=77))
    store(memory, *decoded(traces(*spans[:3])).spans)
    seqs = [event.seq for event in log.read_after(TRACE, 0)]
    assert everywhere(WORD)
    outcome, read_after = [], log.read_after

    def act():
        try:
            outcome.append(redact(SYSTEM, TRACE, seqs, "asked for"))
        except NotFound as error:
            outcome.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=act)

    def read(*args):
        page = read_after(*args)
        if not outcome and not thread.is_alive():
            thread.start()
            thread.join(2)  # as long as it is not behind this move's lock
        return page

    monkeypatch.setattr(log, "read_after", read)

    late_names.move(TRACE, "named", COLLECTOR)
    thread.join()

    if isinstance(outcome[0], NotFound):  # whoever asked for it is told, and asks for it where it is now
        redact(SYSTEM, "named", [event.seq for event in read_after("named", 0)], "asked for")
    assert everywhere(WORD) == []
