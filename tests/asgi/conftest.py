"""What tests of the doors share: one server, and callers of it by their tokens."""

import pytest

from tests.support.authenticator import authenticator  # noqa: F401  # a fixture
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


@pytest.fixture
def agent(callers: dict[str, Caller]) -> Caller:
    """The token of the agent `Desk`."""
    return callers["desk"]
