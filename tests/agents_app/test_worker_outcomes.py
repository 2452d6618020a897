"""Outcomes of calls that are hard to store: texts that no column holds, and a database that is away at that moment."""

import logging

import pytest
from agents import function_tool
from agents.testing import assistant_message, function_call

from agents_app.worker.event_writer import RunEventWriter
from agents_app.worker.run_hooks import arguments
from conversations.core.errors import Unavailable
from conversations.models import ToolCall
from tests.support.agents_running import ended_runs, event_bodies, send_message, team, working

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]
DONE = [assistant_message("so")]


@pytest.fixture(autouse=True)
def _unlogged():
    """Keep half characters out of the captured log: pytest-xdist cannot pass them to its main process."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@function_tool
def list_names() -> str:
    """Return the name of a file that is not UTF-8."""
    return "b\udcff.txt"


@function_tool(failure_error_function=None)
def fail() -> str:
    """Raise an error about such a file."""
    raise OSError("no such file: b\udcff.txt")


@function_tool
def echo(text: str) -> str:
    """Return a text."""
    return text


def test_an_output_with_half_a_surrogate_pair_is_stored_without_it():
    with working(team([function_call("list_names", {}, call_id="c1")], DONE, tools=[list_names])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ToolCall.objects.get().status) == ("done", "done")
    assert [step["output"] for step in event_bodies("tool_step") if step["status"] == "success"] == ["b\ufffd.txt"]


def test_an_error_with_half_a_surrogate_pair_ends_the_run_with_its_reason():
    with working(team([function_call("fail", {}, call_id="c1")], tools=[fail])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ToolCall.objects.get().status) == ("failed", "failed")
    assert "no such file: b\ufffd.txt" in event_bodies("run.failed")[0]["error"]


def test_an_answer_with_half_a_surrogate_pair_is_stored_without_it():
    with working(team([assistant_message("half of \ud83d")])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, event_bodies("output")[0]["text"]) == ("done", "half of \ufffd")


def test_arguments_nested_too_deeply_for_an_event_are_stored_as_text():
    sent = '{"text": "so", "more": ' + "[" * 150 + "]" * 150 + "}"

    assert arguments(sent) == {"args_raw": sent}


def test_a_call_whose_end_cannot_be_stored_is_unknown_once_its_run_has_failed(monkeypatch):
    store = RunEventWriter.store

    async def without_the_database(self, *payloads, **more):
        if any(payload.get("status") == "success" for payload in payloads):
            raise Unavailable("the database is away")
        await store(self, *payloads, **more)

    monkeypatch.setattr(RunEventWriter, "store", without_the_database)
    with working(team([function_call("echo", {"text": "hi"}, call_id="c1")], DONE, tools=[echo])):
        send_message()
        (run,) = ended_runs()

    assert (run.status, ToolCall.objects.get().status) == ("failed", "unknown")
