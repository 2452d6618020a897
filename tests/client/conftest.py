"""What tests of the client library share: a proxy before the server, and a conversation of one's own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.support.cutting_proxy import CuttingProxy, proxied
from tests.support.live import Server


@pytest.fixture
def proxy(served: Server) -> Iterator[CuttingProxy]:
    """What stands between the agent and the server."""
    with proxied(served.port) as proxy:
        yield proxy


@pytest.fixture
def topic() -> str:
    """A conversation's messages."""
    return f"chat:{uuid4().hex}"
