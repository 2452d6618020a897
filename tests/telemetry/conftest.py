"""What tests of telemetry share: the doors' server, and callers of it by their tokens."""

import pytest

from tests.support.doors import Caller
from tests.support.live import Server


@pytest.fixture
def server(door_server: Server) -> Server:
    """The server of all tests of the doors."""
    return door_server


@pytest.fixture
def caller(callers: dict[str, Caller]) -> Caller:
    """An admin's token."""
    return callers["admin"]
