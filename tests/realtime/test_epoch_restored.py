"""PostgreSQL put back to an older copy under a running server: found out, and open pages start afresh."""

import json

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from conversations.core import data_dir
from tests.events.test_epoch import subscribe
from tests.support.live import Server, on_postgresql, until
from tests.support.services import PostgresServer, running


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
        socket.recv(timeout=60)


def socket_of(server, secret):
    url = f"ws://127.0.0.1:{server.port}/ws/"
    return connect(url, additional_headers={"Authorization": f"Bearer {secret}"}, compression=None)


def follow(socket, *, after, topic="stream:c"):
    """Subscribe on an open socket; return the frames up to `caught_up`."""
    socket.send(json.dumps({"op": "subscribe", "topic": topic, "after": after}))
    frames = [json.loads(socket.recv(timeout=60))]
    while frames[-1]["t"] != "caught_up":
        frames.append(json.loads(socket.recv(timeout=60)))
    return frames


def six_events(server):
    """Publish six events and wait until the server has written down that there were six."""
    secret = server.token()
    for n in range(6):
        server.publish(secret, "stream:c", {"event": "log", "n": n})
    epoch = subscribe(server, secret)[-1]["epoch"]
    until(lambda: remembers_all(server, epoch), what="the file to remember")
    return secret, epoch


@pytest.mark.thorough
def test_a_database_restored_under_a_running_server_begins_a_new_epoch(server):
    secret, epoch = six_events(server)

    with socket_of(server, secret) as open_socket:
        follow(open_socket, after=6)
        go_back(server, 3)
        with pytest.raises(ConnectionClosed) as closed:
            read_to_the_end(open_socket)
    reset, events, caught_up = subscribe(server, secret, after=2, epoch=epoch)

    assert closed.value.rcvd.code == 1012
    assert reset["t"] == "reset"
    assert reset["epoch"] != epoch
    assert [event["seq"] for event in events["events"]] == [1, 2, 3]
    assert caught_up["seq"] == 3
    server.command("rebuild")  # the counters, which a dump would have had as they were then
    server.command("verify")


@pytest.mark.thorough
def test_a_client_that_notices_the_restore_first_moves_every_other_socket(server):
    secret, epoch = six_events(server)

    with socket_of(server, secret) as bystander, socket_of(server, secret) as first:
        follow(bystander, after=6)
        with data_dir.file_lock(server.data_dir, "high-water.lock"):  # the server's own look waits
            go_back(server, 3)
            reset, *_ = follow(first, after=6)
            with pytest.raises(ConnectionClosed) as closed:
                read_to_the_end(bystander)

    assert reset["t"] == "reset"
    assert reset["epoch"] != epoch
    assert closed.value.rcvd.code == 1012


@pytest.mark.thorough
def test_a_client_that_notices_it_on_a_socket_of_several_topics_has_to_come_back(server):
    secret, _ = six_events(server)

    with socket_of(server, secret) as open_socket:
        follow(open_socket, after=0, topic="stream:another")
        with data_dir.file_lock(server.data_dir, "high-water.lock"):
            go_back(server, 3)
            with pytest.raises(ConnectionClosed) as closed:
                follow(open_socket, after=6)

    assert closed.value.rcvd.code == 1012


@pytest.fixture
def web_nodes(tmp_path):
    """Two web nodes of one PostgreSQL, each with a data directory of its own; nobody else serves."""
    with running(PostgresServer()) as cluster:
        where = on_postgresql(cluster.create("shared"))
        nodes = [Server(tmp_path / name, "--web-only", **where) for name in ("a", "b")]
        nodes[0].command("migrate")
        yield [node.start() for node in nodes]
        for node in nodes:
            node.kill()


def epoch_of(node):
    return node.rows("SELECT value FROM conversations_meta WHERE name='epoch'")[0][0]


def remembers_all(node, epoch):
    """Return whether a node has written down the newest row, in this epoch."""
    file = node.data_dir / "high-water"
    newest = node.rows("SELECT max(id) FROM conversations_event")[0][0]
    return file.exists() and file.read_text() == f"{epoch} {newest}"


@pytest.mark.thorough
def test_web_nodes_notice_a_restored_database_and_change_the_epoch_once(web_nodes):
    secret = web_nodes[0].token()
    for n in range(6):
        web_nodes[0].publish(secret, "stream:c", {"event": "log", "n": n})
    before = epoch_of(web_nodes[0])
    for node in web_nodes:
        until(lambda node=node: remembers_all(node, before), what="each node to remember")

    go_back(web_nodes[0], 3)
    until(lambda: epoch_of(web_nodes[0]) != before, what="a new epoch")
    after = epoch_of(web_nodes[0])
    for node in web_nodes:
        until(lambda node=node: remembers_all(node, after), what="each node to begin again")

    assert epoch_of(web_nodes[0]) == after
    assert subscribe(web_nodes[1], secret, after=5, epoch=before)[0]["t"] == "reset"


@pytest.mark.thorough
def test_audit_entries_cut_off_beside_a_web_node_are_found(web_nodes):
    node = web_nodes[0]
    node.token("first"), node.token("second")
    file = node.data_dir / "audit-head"
    until(lambda: file.exists() and file.read_text().startswith("2 "), what="the node to remember two entries")
    with psycopg.connect(node.environment["SWITCHBOARD_DATABASE_URL"]) as database:
        database.execute("DELETE FROM conversations_auditentry WHERE seq=2")
        database.execute(
            "UPDATE conversations_audithead SET seq=1,hash=(SELECT hash FROM conversations_auditentry WHERE seq=1)"
        )

    with pytest.raises(AssertionError, match="audit entry 2: missing"):
        node.command("verify")
