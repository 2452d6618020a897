"""An answer of Claude Code whose last line, with its final usage, is written long after its first."""

import json

import pytest

from conversations.import_export.session_follower import SessionFollower
from conversations.management.commands import follow


class Clock:
    """A clock that goes on only in `sleep`, and what happens at its times (s)."""

    def __init__(self, acts):
        self.now, self.acts = 0.0, acts

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        while self.acts and self.acts[0][0] <= self.now:
            self.acts.pop(0)[1]()


class Ended(Exception):
    """The command is stopped."""


def end():
    raise Ended


def line(output_tokens, text):
    usage = {"input_tokens": 10, "output_tokens": output_tokens}
    message = {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": text}], "usage": usage}
    return json.dumps({"type": "assistant", "sessionId": "s", "uuid": text, "message": message}) + "\n"


@pytest.mark.parametrize("pause", [3, 30, 500])
def test_its_usage_is_what_the_last_line_says(tmp_path, monkeypatch, pause):
    path, published = tmp_path / "session.jsonl", []
    path.write_text(line(1, "first"))
    acts = [(pause, lambda: path.write_text(line(1, "first") + line(700, "last"))), (3_000, end)]
    monkeypatch.setattr(follow, "time", Clock(acts))
    follower = SessionFollower(path, lambda topic, payload, bus_id: published.append(payload), print)

    with pytest.raises(Ended):
        follow.Command()._follow(follower, is_once=False)

    assert [body["usage"]["output_tokens"] for body in published if body["event"] == "model.call"] == [700]
