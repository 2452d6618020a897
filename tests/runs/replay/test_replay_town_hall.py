"""The Town Hall's calls made again: what differs is the real difference."""

import json
from typing import Any

import pytest

from agents_app.town_hall import TEAM
from conversations.core.json_diff import diff
from conversations.models import Approval, Run, ToolCall
from conversations.runs.approvals import decide
from conversations.runs.replay import request_replay
from conversations.tool_calls import call_record
from tests.support.agents_running import ended_runs, event_bodies, send_message, working
from tests.support.cast import cast
from tests.support.live import until
from tests.support.replay_desk import ended

pytestmark = pytest.mark.django_db(transaction=True)

TREE = "I want to report a fallen tree at 12 Mill Street. It blocks the road since this morning."
SAID = ("How many incidents were reported? Give me the figures.", TREE, "Feedback: the library staff were kind.")


def leaves(value: Any, path: str = "$") -> dict[str, str]:
    """Write every value of a JSON text by its path, texts that are JSON looked into."""
    if isinstance(value, str) and value[:1] in "{[":
        return leaves(json.loads(value), f"{path} as JSON")
    if isinstance(value, dict):
        return {key: text for name, inner in value.items() for key, text in leaves(inner, f"{path}.{name}").items()}
    return {path: json.dumps(value)}


@pytest.mark.slow
def test_what_differs_from_the_recording_is_the_real_difference():
    people = cast()
    with working(TEAM):
        for n, words in enumerate(SAID, 1):
            send_message(words, to="agent:Dialogue", id=f"m{n}")
            until(lambda: Run.objects.exclude(status="queued").exists(), what="it to begin")
            until(lambda n=n: Run.objects.filter(status__in=("done", "waiting")).count() == n, within=60, what="a run")
            for approval in Approval.objects.filter(status="pending"):
                decide.decide(people["approver"], approval.id, "approve")
                ended_runs(n, within=60)
                until(lambda: not Run.objects.exclude(status="done").exists(), within=60, what="it to file")
        old = list(ToolCall.objects.order_by("called_seq"))
        memory = event_bodies("conversation.handler")
        calls = [
            request_replay.request_replay(people["admin"], call.id, reason="a test", tool=call.name) for call in old
        ]
        for asked_call in calls:
            ended(asked_call.run, within=60)
        decide.decide(people["approver"], Approval.objects.get(status="pending").id, "approve")
        until(lambda: not Run.objects.exclude(status="done").exists(), within=60, what="the last one")

    assert {call.name for call in old} == {
        "give_insights", "incident_formatter_tool", "file_incident", "feedback_formatter_tool",
    }  # fmt: skip
    differing = {}
    for call, asked_call in zip(old, calls, strict=True):
        before, after = call_record.find(call.id), call_record.find(asked_call.call)
        assert after.row.status == "done", call.name
        was, now = leaves(json.loads(before.output)), leaves(json.loads(after.output))
        difference = diff(before.output, after.output)
        assert {change.path for change in difference.changes} == {p for p in was | now if was.get(p) != now.get(p)}
        differing[call.name] = [change.path for change in difference.changes]
    assert differing["give_insights"] == ["$.incidents", "$.incidents_filed", "$.feedback", "$.summary"]
    assert differing["file_incident"] == ["$.status"]  # the same incident is filed once, as the tool promises
    assert event_bodies("conversation.handler") == memory
