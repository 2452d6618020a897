"""What `watch_agents` records of values that no JSON holds, or that are large."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

import msgspec
import pytest
from agents import Agent, RunConfig, Runner

from switchboard.bus import compact
from tests.client.test_watch_agents import events, kinds
from tests.support.provider_answers import message
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
