"""A number stands with its noun in the right form."""

import pytest

from conversations.core.plain_text import counted
from conversations.rendering import message_body, transcript_text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 events"), (1, "1 event"), (2, "2 events"), (12_000, "12,000 events")]
)
def test_only_one_is_singular(number, text):
    assert counted(number, "event") == text


def test_a_single_token_or_event_is_written_as_one():
    assert message_body.usage({"input_tokens": 1, "output_tokens": 1}) == "1 token in, 1 out"
    assert message_body.usage({"total_tokens": 1}) == "1 token"
    assert "c, 1 event. Times are UTC." in "".join(transcript_text.pieces("t", "c", 1, [], "text"))
