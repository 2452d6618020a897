"""A server's first second: one that was just started, and the moment at which its port answers."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.live import Server, prepared, scratch, until

START = 60.0  # seconds a start may take on a machine that does other things, too
LAMP = "There is a broken street lamp in Mill Lane, dangerous at night."
PENDING = "/api/v1/approvals?status=pending"


class Stage(NamedTuple):
    """A data directory to start servers on: the token of an admin, and a question that waits for a decision."""

    home: Path
    token: str
    approval: str


def stage() -> Stage:
    """Make a directory in which an agent has asked for an approval, and stop the server that did."""
    server = Server(scratch("cold") / "data")
    shutil.copytree(prepared(), server.data_dir)
    token = server.token()
    server.start()
    message = {"type": "message", "conversation_id": "lamp", "sender": "Rosa", "recipient": "agent:Dialogue"}
    assert server.publish(token, "chat:lamp", message | {"content": LAMP})[0] == 201
    waiting = until(lambda: server.request("GET", PENDING, token=token)[1]["items"], within=START, what="a question")
    server.terminate()
    return Stage(server.data_dir, token, waiting[0]["approval_id"])


@contextmanager
def cold_server(served: Stage, *, is_newcomer: bool = False) -> Iterator[Server]:
    """Start a server on a copy of the stage and return as soon as its port answers; stop it in order at the end."""
    server = Server(scratch("cold") / "data")
    server.is_newcomer = is_newcomer
    shutil.copytree(served.home, server.data_dir)
    server.launch()
    try:
        deadline = time.monotonic() + START
        while not _listens(server):
            assert server.process is not None
            assert server.process.poll() is None, server.output()
            assert time.monotonic() < deadline, f"no port within {START} s"
        yield server
        assert server.process is not None
        assert server.process.poll() is None, f"it ended with {server.process.poll()}:\n{server.output()}"
        server.terminate()
        assert "Traceback" not in server.output()
    finally:
        server.kill()
        shutil.rmtree(server.data_dir.parent, ignore_errors=True)


def _listens(server: Server) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", server.port), timeout=60):
        return True
    time.sleep(0.005)
    return False


def ndjson(*lines: object) -> bytes:
    """Write lines of JSON."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
