"""A remote agent, in a process of its own, and a worker for whom it is an agent."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents_app.agui.remote_team import team_of
from agents_app.teams.definition import Team
from conversations.core.outbound_address import AllowList
from conversations.core.remote_agent_setting import RemoteAgent
from tests.support.forking import bare_nursery
from tests.support.live import ROOT, free_port, until

NEAR = AllowList.of(["127.0.0.1"])


def _is_open(port: int) -> bool:
    with socket.socket() as wire:
        return wire.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="session")
def elsewhere() -> Iterator[str]:
    """The address of an agent that the public package serves."""
    port, nowhere = free_port(), Path(os.devnull)
    command = ["-m", "tests.support.agui_agent", str(port)]
    process = bare_nursery(ROOT).fork(command, env=os.environ, stdout=nowhere, stderr=nowhere)
    try:
        until(lambda: _is_open(port), within=60, what="the remote agent to listen")
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()


@pytest.fixture
def remote(elsewhere: str) -> Callable[..., Team]:
    """Make the team of that agent, Weather."""

    def make(path: str = "", url: str = "", allowed: AllowList = NEAR, **more: float) -> Team:
        agents = [RemoteAgent("Weather", url or elsewhere + path, token="there-1")]
        return team_of(agents, allowed, **{"silence_s": 20.0, "most_bytes": 4 << 20, **more})

    return make
