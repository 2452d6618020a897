"""What an import that was killed has staged is removed where only web nodes serve, too."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.asgi.test_event_feed import publish
from tests.support.doors import make_tokens
from tests.support.live import Server, on_postgresql, until
from tests.support.services import PostgresServer, running

pytestmark = pytest.mark.slow


@pytest.fixture
def address() -> Iterator[str]:
    """A database on a server of its own."""
    with running(PostgresServer("-c", "fsync=off")) as cluster:
        assert isinstance(cluster, PostgresServer)
        yield cluster.create("staged")


def test_a_web_node_removes_what_abandoned_imports_staged(address: str) -> None:
    node = Server(None, "--web-only", SWITCHBOARD_TEAMS="", **on_postgresql(address))
    node.command("migrate", "--verbosity", "0")
    node.start()
    publish(make_tokens(node, desk="Desk")["admin"], "abandoned", 1)
    node.terminate()
    with psycopg.connect(address) as database:
        database.execute("UPDATE conversations_conversation SET is_staged=true,key='staged:x:0',last_at=1")

    node.start()

    with psycopg.connect(address, autocommit=True) as database:
        rows = "SELECT count(*) FROM conversations_conversation"
        until(lambda: database.execute(rows).fetchone() == (0,), within=30, what="what was staged to be removed")
    node.terminate()
