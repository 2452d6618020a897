"""Places for records, and records to fill them with."""

import shutil
from itertools import count

import pytest

from tests.support.live import Server, on_postgresql
from tests.support.services import PostgresServer, running

numbers = count(1)


@pytest.fixture(scope="session")
def cluster():
    with running(PostgresServer()) as server:
        yield server


@pytest.fixture
def place(tmp_path, request):
    """Return what makes an empty place of a kind."""

    def make(kind):
        number = next(numbers)
        if kind == "sqlite":
            return Server(tmp_path / f"place{number}")
        cluster = request.getfixturevalue("cluster")
        return Server(tmp_path / f"place{number}", **on_postgresql(cluster.create(f"backup{number}")))

    return make


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """Return what has a server record something and ends it; on SQLite once for all places of so many messages."""
    made = {}

    def fill(server, messages=40):
        if "SWITCHBOARD_DATABASE_URL" in server.environment:
            return recorded(server, messages)
        if messages not in made:
            made[messages] = recorded(Server(tmp_path_factory.mktemp("filled") / "data"), messages).data_dir
        shutil.copytree(made[messages], server.data_dir)
        return server

    return fill


def recorded(server, messages):
    """Have a server record so many messages, and end it."""
    server.start()
    secret = server.token()
    for n in range(messages):
        key, words = f"backup{n % 3}", {"sender": "agent:A", "recipient": "agent:B", "content": f"Size {n}"}
        status, body = server.publish(secret, f"chat:{key}", {"type": "message", "conversation_id": key, **words})
        assert status == 201, body
    server.terminate()
    return server
