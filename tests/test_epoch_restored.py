"""PostgreSQL put back to an older copy under a running server: found out, and open pages start afresh."""

import json

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.live import Server, on_postgresql, until
from tests.services import PostgresServer, running
from tests.test_epoch import subscribe


@pytest.fixture
def server(tmp_path):
    with running(PostgresServer()) as cluster:
        made = Server(tmp_path / "data", **on_postgresql(cluster.create("restored"))).start()
        yield made
        made.kill()


def go_back(server, seq):
    """Take away what came after a seq, as a restore from a dump does."""
    with psycopg.connect(server.environment["SWITCHBOARD_DATABASE_URL"]) as database:
        database.execute("DELETE FROM conversations_event WHERE seq>%s", [seq])
        database.execute("SELECT setval('conversations_event_id_seq', (SELECT max(id) FROM conversations_event))")
        database.execute(
            "UPDATE conversations_conversation SET head_seq=%s,head_hash="
            "(SELECT hash FROM conversations_event WHERE seq=%s)",
            [seq, seq],
        )


def read_to_the_end(socket):
    while True:
        socket.recv(timeout=10)


def test_a_database_restored_under_a_running_server_begins_a_new_epoch(server):
    secret = server.token()
    for n in range(6):
        server.publish(secret, "stream:c", {"event": "log", "n": n})
    epoch = subscribe(server, secret)[-1]["epoch"]
    water = server.data_dir / "high-water"
    until(lambda: water.read_text() == f"{epoch} 6", what="the file to remember")

    with connect(
        f"ws://127.0.0.1:{server.port}/ws/", additional_headers={"Authorization": f"Bearer {secret}"}, compression=None
    ) as open_socket:
        open_socket.send(json.dumps({"op": "subscribe", "topic": "stream:c", "after": 6}))
        go_back(server, 3)
        with pytest.raises(ConnectionClosed) as closed:
            read_to_the_end(open_socket)
    reset, events, caught_up = subscribe(server, secret, after=2, epoch=epoch)

    assert closed.value.rcvd.code == 1012
    assert reset["t"] == "reset"
    assert reset["epoch"] != epoch
    assert [event["seq"] for event in events["events"]] == [1, 2, 3]
    assert caught_up["seq"] == 3
    server.command("verify")
