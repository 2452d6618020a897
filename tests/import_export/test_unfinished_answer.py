"""A session file of Claude Code that is imported, or followed once, while its last answer is written."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import call_command

from conversations.import_export.session_follower import SessionFollower
from conversations.management.commands import follow
from conversations.models import Turn


def answer(*, at, is_whole, stop_reason="end_turn"):
    """Write the lines of an answer, of which only the last one has its final usage."""
    lines = [("first", 1, None), ("last", 700, stop_reason)]
    return "".join(_line(*line, at) for line in lines[: 1 + is_whole])


def _line(text, output_tokens, stop_reason, at):
    usage = {"input_tokens": 10, "output_tokens": output_tokens}
    message = {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": text}], "usage": usage}
    line = {"type": "assistant", "sessionId": "s", "uuid": text, "timestamp": at.isoformat()}
    return json.dumps(line | {"message": message | {"stop_reason": stop_reason}}) + "\n"


def followed_once(path, published):
    follower = SessionFollower(path, lambda topic, payload, bus_id: published.setdefault(bus_id, payload), print)
    follow.Command()._follow(follower, is_once=True)


def spent(published):
    return [body["usage"]["output_tokens"] for body in published.values() if body["event"] == "model.call"]


def test_its_usage_is_that_of_its_last_line_though_it_was_followed_before(tmp_path):
    path, published, at = tmp_path / "session.jsonl", {}, datetime.now(UTC)
    path.write_text(answer(at=at, is_whole=False))
    followed_once(path, published)

    path.write_text(answer(at=at, is_whole=True))
    followed_once(path, published)

    assert spent(published) == [700]


@pytest.mark.django_db(transaction=True)
def test_its_usage_is_that_of_its_last_line_though_it_was_imported_before(tmp_path):
    path, at = tmp_path / "session.jsonl", datetime.now(UTC)
    path.write_text(answer(at=at, is_whole=False))
    call_command("import", str(path), "--strict")

    path.write_text(answer(at=at, is_whole=True))
    call_command("import", str(path), "--strict", "--update")

    assert sum(Turn.objects.values_list("output_tokens", flat=True)) == 700


@pytest.mark.parametrize(("stop_reason", "age"), [("end_turn", timedelta()), (None, timedelta(minutes=11))])
def test_the_usage_of_an_answer_that_is_over_is_published_at_once(tmp_path, stop_reason, age):
    """Many versions of Claude Code write no stop_reason: then its age shows that it is over."""
    path, published = tmp_path / "session.jsonl", {}
    path.write_text(answer(at=datetime.now(UTC) - age, is_whole=True, stop_reason=stop_reason))

    followed_once(path, published)

    assert spent(published) == [700]
