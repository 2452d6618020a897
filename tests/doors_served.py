"""One server for all tests of its doors; each test uses conversations of its own."""

from collections.abc import Iterator

import pytest

from tests.doors import Caller, make_tokens
from tests.live import Server


@pytest.fixture(scope="session")
def door_server() -> Iterator[Server]:
    """A server; at its end its record is whole and nothing was an error."""
    started = Server().start()
    yield started
    assert "are whole" in started.command("verify")
    started.terminate()
    assert "Traceback" not in started.output()


@pytest.fixture(scope="session")
def callers(door_server: Server) -> dict[str, Caller]:
    """A token of each role by its name, and `desk`, that of the agent Desk."""
    return make_tokens(door_server, desk="Desk", used="Used", idle="Idle", leaver="A", fuzzer="Fuzzer")
