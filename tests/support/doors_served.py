"""One server for all tests of its doors; each test uses conversations of its own."""

from collections.abc import Iterator

import pytest

from tests.support.doors import Caller, make_tokens
from tests.support.live import Server
from tests.support.shared_servers import writers

REVOKE = (
    "from conversations.access.accounts import tokens\n"
    "from conversations.core.principals import SYSTEM\n"
    "tokens.revoke_token(SYSTEM, 'revoked')"
)


@pytest.fixture(scope="session")
def door_server() -> Iterator[Server]:
    """A server; at its end its record is whole and nothing was an error."""
    started = writers.share("the doors", Server().start())
    yield started
    verified = started.command("verify")
    assert "are intact" in verified, verified
    started.terminate()
    output = started.output()
    assert "Traceback" not in output, output[output.index("Traceback") - 300 :][:3000]


@pytest.fixture(scope="session")
def callers(door_server: Server) -> dict[str, Caller]:
    """A token of each role by its name, and `desk`, that of the agent Desk."""
    made = make_tokens(
        door_server, desk="Desk", used="Used", idle="Idle", leaver="A", fuzzer="Fuzzer", revoked="Revoked"
    )
    door_server.command("shell", "--no-imports", "-c", REVOKE)
    return made
