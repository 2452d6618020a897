"""An older copy in the database's place is found out, and clients start afresh."""

import json
import shutil
import sqlite3

import pytest
from websockets.sync.client import connect

from conversations.core import principals
from conversations.events.epoch import HighWater
from conversations.import_export.staged_import import StagedImport
from tests.support.live import Server
from tests.support.tiers import variants


def subscribe(server, secret, **more):
    """Subscribe to a conversation; return the frames up to caught_up."""
    url = f"ws://127.0.0.1:{server.port}/ws/"
    with connect(url, additional_headers={"Authorization": f"Bearer {secret}"}, compression=None) as ws:
        ws.send(json.dumps({"op": "subscribe", "topic": "stream:c", **more}))
        frames = [json.loads(ws.recv(timeout=60))]
        while frames[-1]["t"] != "caught_up":
            frames.append(json.loads(ws.recv(timeout=60)))
    return frames


def copy_of(server, folder):
    """Copy the database as a backup would."""
    copy = folder / "copy.sqlite3"
    with server.database() as source, sqlite3.connect(copy) as target:
        source.backup(target)
    return copy


@pytest.mark.slow
@pytest.mark.parametrize("end", variants(["kill", "terminate"]))
def test_a_database_swapped_for_an_older_copy_begins_a_new_epoch(tmp_path, end):
    server = Server(tmp_path / "data")
    server.data_dir.mkdir()
    server.start()
    secret = server.token()
    for n in range(3):
        server.publish(secret, "stream:c", {"event": "log", "n": n})
    copy = copy_of(server, tmp_path)
    for n in range(3, 6):
        server.publish(secret, "stream:c", {"event": "log", "n": n})
    epoch = subscribe(server, secret)[-1]["epoch"]
    getattr(server, end)()
    for path in server.data_dir.glob("switchboard.sqlite3*"):
        path.unlink()
    shutil.copy(copy, server.data_dir / "switchboard.sqlite3")

    server.start()
    reset, events, caught_up = subscribe(server, secret, after=6, epoch=epoch)
    server.kill()

    assert reset["t"] == "reset"
    assert reset["epoch"] != epoch
    assert [e["body"]["n"] for e in events["events"]] == [0, 1, 2]
    assert caught_up["seq"] == 3


@pytest.mark.thorough
def test_a_restart_without_loss_keeps_the_epoch(tmp_path):
    server = Server(tmp_path / "data")
    server.data_dir.mkdir()
    server.start()
    secret = server.token()
    server.publish(secret, "stream:c", {"event": "log"})
    epoch = subscribe(server, secret)[-1]["epoch"]
    server.kill()

    server.start()
    frames = subscribe(server, secret, after=1, epoch=epoch)
    server.kill()

    assert [frame["t"] for frame in frames] == ["caught_up"]
    assert frames[0]["epoch"] == epoch


@pytest.mark.django_db(transaction=True)
def test_a_discarded_import_does_not_make_the_record_look_older(tmp_path):
    intake, water = StagedImport(principals.import_principal("file")), HighWater(tmp_path)
    intake.receive([b'{"conversation":"x"}', b'{"payload":{"event":"log","conversation_id":"x"}}', b'{"end":1}'])
    water.write()

    intake.discard()

    assert not water.check()
