"""Bodies with a lone surrogate, or a number that Python does not hold, are redacted like any other."""

import json
import time

import pytest

from conversations.core.principals import SYSTEM
from conversations.events import log, payload
from conversations.models import Event, ToolCall
from conversations.redaction import expiry, redact
from tests.events.test_log import AGENT
from tests.redaction.test_redact import aged, spoken
from tests.support.unchecked import from_text
from tests.support.verified import verify_events

pytestmark = pytest.mark.django_db(transaction=True)
HALF = r'{"event":"log","name":"\ud800x","text":"Hedgehog"}'
HUGE = '{"event":"log","text":"Hedgehog","duration_ms":1e999}'
LONG = f'{{"event":"log","text":"Hedgehog","turn":{"9" * 5000}}}'
MONTH_US = 30 * 86_400_000_000


def stored(key, body, event_id=None):
    log.append([from_text(f"stream:{key}", body, AGENT, event_id)])


def expire():
    rule = expiry.RetentionScope(time.time_ns() // 1000 - MONTH_US)
    return expiry.expire(SYSTEM, rule, "30 days", lambda *_: None)


@pytest.mark.parametrize("body", [HALF, HUGE, LONG])
def test_an_event_expires_whatever_its_texts_and_numbers_are(body):
    stored("unusual-a", body)
    aged("unusual-a", 1)

    assert expire() == (1, 0)

    left = Event.objects.get(conversation__key="unusual-a", seq=1).body
    assert "Hedgehog" not in left
    assert payload.parse(left.encode()).kind == "log"
    assert verify_events().ok


@pytest.mark.parametrize("other", [r'"\ud800"', "1e999", "9" * 5000])
def test_a_field_is_redacted_whatever_stands_beside_it(team, other):
    args = f'{{"phone":"0171 555","x":{other}}}'
    stored("unusual-b", f'{{"event":"tool_step","name":"find","status":"start","tool_call_id":"c1","args":{args}}}')

    redact.redact_call(team["admin"], ToolCall.objects.get().id, "args.phone", "asked for")

    left = Event.objects.get(conversation__key="unusual-b", seq=1).body
    assert "0171" not in left
    assert other in left or f'"{other}"' in left
    assert verify_events().ok


def test_an_event_that_cannot_be_redacted_keeps_no_other_from_expiring(monkeypatch, caplog):
    for key in ("unusual-c", "unusual-d", "unusual-e"):
        spoken(key, f"hello {key}")
        aged(key, 1)
    tombstone = redact.tombstone

    def failing(body, earlier=None):
        if "unusual-c" in json.loads(body)["content"]:
            raise ValueError("no tombstone")
        return tombstone(body, earlier)

    monkeypatch.setattr(redact, "tombstone", failing)

    assert expire() == (2, 1)

    assert "unusual-c" in caplog.text
    assert Event.objects.filter(seq=1, salt=None).count() == 2
