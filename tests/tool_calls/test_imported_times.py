"""An imported call is shown at its original time; the list's order and filters go by the time of recording."""

import importlib
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from conversations.core import principals
from conversations.events import log
from conversations.events.log import timeline_reads
from conversations.models import Conversation, ToolCall
from conversations.tool_calls.listing import export
from conversations.tool_calls.listing.filters import CallFilters
from tests.support import toolcalls
from tests.support.cast import client_of
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db

FIRST = datetime(2025, 11, 20, 23, 33, tzinfo=UTC)


@pytest.fixture
def imported() -> ToolCall:
    """A call that was imported after one of today."""
    log.append(toolcalls.call("today", 1))
    log.append([_step(1, status="start", args={"path": "a"}), _step(3, status="success", duration_ms=120_000.0)])
    return _call("old")


def _call(key: str) -> ToolCall:
    return ToolCall.objects.filter(conversation__key=key).order_by("called_seq")[0]


def _step(minutes: int, **fields: object) -> log.NewEvent:
    at = (FIRST + timedelta(minutes=minutes)).isoformat()
    step = {"event": "tool_step", "agent": "A", "name": "bash", "tool_call_id": "c", "created_at": at}
    return unchecked("old", step | fields, principals.import_principal("test"))


ORIGINAL = (FIRST + timedelta(minutes=1)).isoformat()


def test_the_list_shows_when_it_was_called_and_when_it_was_imported(team, imported):
    html = client_of(team["viewer"]).get("/calls/?conversation=old&part=list").content.decode()

    assert f'datetime="{ORIGINAL}"' in html
    assert "imported <time" in html


def test_a_call_that_was_not_imported_is_not_said_to_be(team, imported):
    assert "imported" not in client_of(team["viewer"]).get("/calls/?conversation=today&part=list").content.decode()


def test_the_list_stays_in_the_order_of_the_record(team, imported):
    items = client_of(team["viewer"]).get("/api/v1/tool-calls").json()["items"]

    assert [item["conversation_id"] for item in items] == ["old", "today"]


def test_files_and_the_api_have_both_times(team, imported):
    client = client_of(team["viewer"])
    exported, _ = export.EXPORT.reader(CallFilters(conversation="old"))(None)
    items = [
        *client.get("/api/v1/tool-calls?conversation=old").json()["items"],
        client.get(f"/api/v1/tool-calls/{imported.id}").json(),
        *({name: item[name] for name in export.COLUMNS} for item in exported),
    ]

    assert len(items) == 3
    assert {item["started_at"] for item in items} == {ORIGINAL}
    assert len({item["imported_at"] for item in items}) == 1
    assert datetime.fromisoformat(items[0]["imported_at"]).timestamp() == imported.started_at / 1e6


def test_a_call_that_was_not_imported_has_no_time_of_import(team, imported):
    item = client_of(team["viewer"]).get("/api/v1/tool-calls?conversation=today").json()["items"][0]

    assert item["imported_at"] is None


def test_a_long_call_is_exported_with_its_original_time(team):
    log.append([_step(1, status="start", args={"text": "a" * 70_000})])

    [item] = client_of(team["viewer"]).get("/api/v1/tool-calls?conversation=old").json()["items"]

    assert item["started_at"] == ORIGINAL


def test_the_calls_around_it_are_drawn_and_listed_at_their_original_times(team, imported):
    log.append(
        [
            _step(5, status="start", tool_call_id="d"),
            _step(9, status="success", tool_call_id="d", duration_ms=240_000.0),
        ]
    )
    html = client_of(team["viewer"]).get(f"/calls/{imported.id}/").content.decode()
    places = [float(x) for x in re.findall(r'class="bar"[^>]* x="([\d.]+)"', html)]

    assert places == [0.0, 100.0]
    assert (FIRST + timedelta(minutes=5)).isoformat() in html


def test_without_a_result_it_is_not_said_to_be_running(team):
    log.append([_step(1, status="start")])
    client = client_of(team["viewer"])
    call = _call("old")

    assert call.status == "no_result"
    assert "no result recorded" in client.get("/calls/?part=list").content.decode()
    assert "has no result of this call" in client.get(f"/calls/{call.id}/").content.decode()
    assert client.get("/api/v1/tool-calls?status=executing").json()["items"] == []
    assert [item["id"] for item in client.get("/api/v1/tool-calls?status=no_result").json()["items"]] == [call.id]
    page = client.get("/conversations/old/").content.decode().partition("<main")[2]
    assert "no result recorded" in page
    assert ">running<" not in page


def _step_now(**fields: object) -> log.NewEvent:
    """Make the call of a session that is followed while it happens."""
    return _step(0, status="start", conversation_id="new", created_at=datetime.now(UTC).isoformat(), **fields)._replace(
        conversation="new"
    )


def test_a_call_of_a_session_that_is_followed_is_running(team):
    log.append([_step_now()])

    assert _call("new").status == "executing"
    assert ">running<" in client_of(team["viewer"]).get("/conversations/new/").content.decode()


def test_the_upgrade_finds_the_imported_calls_that_were_left_as_running(team, imported):
    log.append([_step(5, status="start", tool_call_id="d"), toolcalls.call("today", 2)[0], _step_now()])
    ToolCall.objects.filter(finished_seq=None).update(status="executing")
    migration = importlib.import_module("conversations.migrations.0031_calls_without_result")

    migration.mark(None, connection.schema_editor())

    open_calls = ToolCall.objects.filter(finished_seq=None).values_list("conversation__key", "status")
    assert set(open_calls) == {("old", "no_result"), ("today", "executing"), ("new", "executing")}


def test_a_result_that_is_imported_later_ends_it(team):
    log.append([_step(1, status="start")])

    log.append([_step(3, status="success", output="done")])

    assert _call("old").status == "done"


def test_the_timeline_does_not_draw_it_to_the_end(team):
    log.append([_step(1, status="start")])
    conversation = Conversation.objects.get(key="old")

    (call,) = timeline_reads.read(conversation.pk, "old", conversation.head_seq).calls

    assert call.ended_at == call.began_at


def test_a_comparison_shows_its_original_time(team, imported):
    other = _call("today")
    html = client_of(team["viewer"]).get(f"/calls/compare/?a={imported.id}&b={other.id}").content.decode()

    assert FIRST.replace(minute=34).strftime("%Y-%m-%dT%H:%M:%S") in html
