"""Hostile content in every place of an event: nothing but the allowed elements is drawn, and nothing said is lost.

A sample here; every payload with `-m faults`. What a real browser does with them is tests/test_browser_hostile.py's.
"""

import json
import re
from collections.abc import Iterator

import pytest

from conversations.events.log.records import CallEvents, Stored
from conversations.rendering import ansi_codes, event_renderer
from conversations.rendering.event_renderer import EventRenderer
from conversations.rendering.lane_cards import LaneRenderer
from tests.support.drawn_html import Seen
from tests.support.hostile import payloads
from tests.support.shares import share_of

AT = 1_795_298_527_000_000
SAMPLE = 250
_ENTITY = re.compile(r"&#?\w+;")


@pytest.mark.thorough
def test_sampled_payloads_stay_text_everywhere():
    _prove(payloads(SAMPLE))


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_every_payload_stays_text_everywhere(record_property):
    characters = share_of(payloads())

    _prove(characters)

    record_property("amount", f"{len(characters):,} payloads in every place, 0 drawn as anything but text")


def _prove(texts: list[str]) -> None:
    assert len(texts) > 100
    for payload in texts:
        for event, call in _events(payload):
            html = str(_draw(event, call))

            assert Seen(html).faults == [], (event.kind, payload)
            html.encode("utf-8")
            assert Seen(str(_draw(event, call, LaneRenderer))).faults == [], (event.kind, payload)
        _prove_nothing_is_lost(payload)
    event_renderer._cache.clear()


def _prove_nothing_is_lost(payload: str) -> None:
    """Every letter is to be read, in its order; but entities may have become what they stand for, colours are gone."""
    drawn = Seen(str(_draw(_stored("message", sender="agent:A", content=payload), None))).text

    assert _is_within(_ENTITY.sub("", ansi_codes.strip(payload)), drawn), payload


def _is_within(text: str, drawn: str) -> bool:
    rest = iter(drawn.lower())
    return all(char in rest for char in text.lower() if char.isascii() and char.isalpha())


def _draw(event: Stored, call: CallEvents | None, pen: type[EventRenderer] = EventRenderer) -> str | None:
    event_renderer._cache.clear()
    fragment = pen("c1").draw(event, call)
    return fragment.html or fragment.opens


def _events(text: str) -> Iterator[tuple[Stored, CallEvents | None]]:
    """Put the text in every place a stranger can fill."""
    yield _stored("message", sender=text, recipient=text, content=text, metadata={text: text}, created_at=text), None
    yield (
        _stored("message", sender=f"agent:{text}", recipient=f"chat:{text}", content="x", metadata={"output_id": text}),
        None,
    )
    yield _stored("control", sender=text, content=json.dumps({text: text})), None
    yield (
        _stored("output", agent=text, text=f"```{text}\n{text}\n```\n[{text}]({text}) ![{text}](<{text}> '{text}')"),
        None,
    )
    yield _stored("token", agent=text, text=text), None
    yield _stored("user_message", sender=text, text=json.dumps({text: {text: [text]}})), None
    yield _stored("log", level=text, component=text, message=text), None
    yield _stored("signal_send", agent=text, topic=text), None
    yield _stored("conversation.opened", title=text, handler=text), None
    forked = {"parent": text, "title": text, "reason": text, "by": text, "forked_at": 3, "changed": 4}
    yield _stored("conversation.forked", **forked), None
    yield _stored("conversation.forked", **forked)._replace(principal="system"), None
    changed = {"conversation_id": text, "seq": 3, "sender": text, "content": text}
    event_ = _stored("message", sender="user:otto", content="x", metadata={"changed": changed})
    yield event_, None
    yield event_._replace(principal="user:otto"), None
    yield _stored("agent.handoff", from_agent=text, to_agent=text, reason=text), None
    yield _stored("record.gap", reason=text), None
    yield _stored("record.gap", reason=text, why=text, topic=text, since=text, until=text, lost=text), None
    yield _stored("dead_letter", agent=text, error=text, envelope={text: text, "content": text}), None
    yield _stored("signal", sender=text, payload={text: text}), None
    yield _stored(text[:64], event=text, words=text), None
    step = _stored(
        "tool_step", agent=text, name=text, args={text: text}, args_raw=text, tool_call_id=text, lookup_key=text
    )
    yield (
        step,
        CallEvents(
            text, "done", 2, AT, 1.0, step, _stored("tool_step", seq=2, result_summary={text: text}, error=text)
        ),
    )
    yield step, CallEvents(text, text, 1, AT, None, step, _stored("tool_step", seq=2, output=text, error={text: text}))


def _stored(kind: str, seq: int = 1, **body: object) -> Stored:
    body = {"event": kind} | body
    return Stored("c1", seq, kind, AT, "bus:redis", None, None, None, json.dumps(body))
