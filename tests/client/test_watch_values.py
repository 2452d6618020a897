"""What `watch_agents` records of values that no JSON holds, or that are large."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec
import pytest
from agents import Agent, RunConfig, Runner, function_tool

from switchboard import span_facts
from switchboard.bus import compact
from switchboard.span_facts import MAX_TEXT
from tests.client.test_watch_agents import events, kinds, run
from tests.support.provider_answers import call, message
from tests.support.provider_server import served_apart
from tests.support.watched import in_turn, model, watched

GROUP = UUID("00000000-0000-4000-8000-000000000001")


def test_a_group_may_be_any_value_that_has_a_text() -> None:
    with served_apart(in_turn([message("Hello.")])) as server, watched() as (watch, bus):
        agent = Agent("Clerk", model=model(server))

        asyncio.run(Runner.run(agent, "hi", run_config=RunConfig(group_id=GROUP)))  # type: ignore[arg-type]

        recorded = events(watch, bus, f"stream:{GROUP}")
        assert watch.lost == 0
    assert kinds(recorded)[-1] == "run.done"
    assert {json.loads(compact(event))["conversation_id"] for event in recorded} == {str(GROUP)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("caf\udce9.txt", "caf\ufffd.txt"),
        ("half \ud83d", "half \ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("whole \U0001f600", "whole \U0001f600"),
        ("\ud55c\uad6d", "\ud55c\uad6d"),  # Korean, which is written as \\ud…
        ("written out \\ud800", "written out \\ud800"),
        ("\\\ud800", "\\\ufffd"),
    ],
    ids=ascii,
)
def test_a_text_that_utf_8_cannot_hold_is_sent_with_replacement_characters(text: str, expected: str) -> None:
    payload = {"event": "log", "text": text, text: [text]}

    decoded = msgspec.json.decode(compact(payload))  # as the server does, which refuses lone surrogates

    assert decoded == {"event": "log", "text": expected, expected: [expected]}


class Counted(list[Any]):
    """A list that counts what is read of it."""

    read = 0

    def __iter__(self) -> Any:
        for item in super().__iter__():
            Counted.read += 1
            yield item


def test_of_a_large_output_only_what_is_sent_is_written_as_json() -> None:
    numbers = Counted(range(1_000_000))

    text = span_facts._plain({"numbers": numbers})

    assert len(text) == MAX_TEXT
    assert text.startswith('{"numbers": [0, 1, 2, ')
    assert Counted.read < MAX_TEXT


def nested() -> Any:
    """Return a value nested too deep for JSON, and for its own text."""
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return value


class Silent:
    """A value that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


ODD: dict[str, Callable[[], Any]] = {
    "nested too deep": nested,
    "without a text": Silent,
    "too many digits": lambda: 10**5000,
    "not a number": lambda: float("nan"),
    "a name that is no text": lambda: {(1, 2): "a tuple"},
}


@pytest.mark.parametrize("kind", ODD)
def test_a_call_whose_output_is_no_json_ends(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @function_tool
    def give() -> str:
        """Give something."""
        return "replaced"

    steps = [call("give", {}, "call_1")], [message("Done.")]
    plain = span_facts._plain
    monkeypatch.setattr(span_facts, "_plain", lambda _: plain(ODD[kind]()))
    with served_apart(in_turn(*steps)) as server, watched() as (watch, bus):
        run(Agent("Clerk", model=model(server), tools=[give]))

        recorded = events(watch, bus)
        assert watch.lost == 0
    assert "success" in kinds(recorded)
    assert all(compact(event) for event in recorded)
