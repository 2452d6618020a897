"""A remote agent cannot make more of its stream than it sent: neither in memory, in the record nor in the inbox."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from conversations.models import Approval, Event
from tests.support.agents_running import ended_runs, event_bodies, send_message, working

pytestmark = pytest.mark.django_db(transaction=True)
BEGUN = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
CALL = [
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "send"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": json.dumps({"text": "x" * 100_000})},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
]


def played(remote, tmp_path, *events):
    """Return the events that a run failed with, of an agent that sends these."""
    (tmp_path / "stream.txt").write_text("".join(f"data: {json.dumps(event)}\n\n" for event in events))
    with working(remote()):
        send_message(f"play {tmp_path / 'stream.txt'}", key="bounds", to="agent:Weather")
        ended_runs()
    return event_bodies("run.failed", "bounds")


@pytest.mark.slow
def test_a_tool_call_ends_once(remote, tmp_path):
    (failure,) = played(remote, tmp_path, BEGUN, *CALL, *CALL[-1:] * 20)

    assert "ended a tool call that had already ended" in failure["error"]
    assert Event.objects.filter(kind="tool_step").count() <= 1


@pytest.mark.slow
def test_an_id_is_a_new_call_once_it_begins_again(remote, tmp_path):
    done = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}

    assert played(remote, tmp_path, BEGUN, *CALL, *CALL, done) == []
    assert Event.objects.filter(kind="tool_step").count() == 2


@pytest.mark.parametrize("call", [{}, {"toolCallId": "c1"}], ids=["many", "large together"])
def test_interrupts_are_bounded(remote, tmp_path, call):
    count = 20 if call else 2_000
    interrupts = [{"id": f"i{n}", "reason": "tool_call", **call} for n in range(count)]
    outcome = {"type": "interrupt", "interrupts": interrupts}

    (failure,) = played(
        remote, tmp_path, BEGUN, *CALL, {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": outcome}
    )

    assert "interrupts" in failure["error"]
    assert not Approval.objects.exists()


@contextmanager
def answering(*pieces: bytes) -> Iterator[str]:
    """Serve one connection with these bytes, the last of them until nobody reads, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            wire, _ = server.accept()
            with wire, suppress(OSError):
                wire.recv(64 << 10)
                for piece in pieces:
                    wire.sendall(piece)
                for _ in range(1_000):
                    wire.sendall(pieces[-1] * (64 << 10))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x"),
        (b"HTTP/1.1 100 Continue\r\n\r\n",),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Late: ",
            b"x",
        ),
    ],
    ids=["header", "announcements", "trailer"],
)
def test_headers_without_an_end_are_cut_off(remote, pieces):
    with answering(*pieces) as url, working(remote(url=url)):
        send_message("hello", key="bounds", to="agent:Weather")
        ended_runs()

    assert "without its body" in event_bodies("run.failed", "bounds")[0]["error"]
