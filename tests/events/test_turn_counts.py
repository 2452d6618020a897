"""What an answer spent, as events of many kinds tell it: the quick reader and the lenient one agree."""

import json

import pytest

from conversations.coding_agents.claude_code_session import ClaudeCodeSession
from conversations.events.projections import turns

ODD = [None, True, -1, 1.5, "97", 1 << 60, [], {}]
PLAIN = {"input_tokens": 97, "output_tokens": 52}


@pytest.mark.parametrize("body", [
    {},
    {"usage": None},
    {"usage": {}},
    {"usage": PLAIN, "agent": "A", "model": "m", "duration_ms": 3},
    {"usage": {"prompt_tokens": 7, "completion_tokens": 3, "input_tokens": 0}},
    {"usage": {**PLAIN, "input_tokens_details": {"cached_tokens": 9, "other": []}}},
    {"usage": {**PLAIN, "prompt_tokens_details": {"cached_tokens": 9}, "cached_tokens": 4}},
    {"usage": {**PLAIN, "input_tokens_details": {}, "prompt_tokens_details": {"cached_tokens": 9}}},
])  # fmt: skip
def test_both_readers_read_the_same(body):
    text = json.dumps(body)

    assert _spent(turns._read(text)) == _spent(turns._read_leniently(text))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", turns.COUNTS)
def test_a_count_that_is_none_leaves_the_others(name, odd):
    counts = turns._read(json.dumps({"usage": {"input_tokens": 5, "output_tokens": 6, name: odd}})).usage

    assert getattr(counts, name) == 0
    assert {5, 6} - {counts.input_tokens, counts.output_tokens} <= ({5} if "input" in name else {6})


@pytest.mark.parametrize("usage", [[], 3, "97", True])
def test_a_usage_that_is_no_object_tells_nothing(usage):
    assert turns._read(json.dumps({"usage": usage})) is None


def _spent(fields):
    counts = fields.usage or turns.NOTHING
    spent = counts.input_tokens or counts.prompt_tokens, counts.output_tokens or counts.completion_tokens
    return spent, counts.cached, fields.agent, fields.model, fields.duration_ms


def test_what_claude_code_wrote_to_a_cache_is_told():
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 5, "output_tokens": 7}
    text = [{"type": "text", "text": "Hi"}]
    message = {"id": "m", "role": "assistant", "content": text, "usage": usage, "stop_reason": "end_turn"}
    line = {"type": "assistant", "uuid": "u", "sessionId": "s", "message": message}

    events = ClaudeCodeSession(line).events(line)

    (spent,) = [body["usage"] for event in events if (body := event.payload)["event"] == "model.call"]
    assert spent == {"input_tokens": 48, "output_tokens": 7, "cached_tokens": 5, "cache_write_tokens": 40}
