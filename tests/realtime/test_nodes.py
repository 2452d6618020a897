"""A process tells of itself, and is gone when it stops telling."""

import asyncio
import gc
import json
import threading

import pytest
from django.db import DatabaseError

from conversations.core import node_heartbeat
from conversations.core.database_clock import database_now
from conversations.core.errors import Unavailable
from conversations.core.node_heartbeat import Heartbeat
from conversations.events import epoch
from conversations.models import Node
from conversations.realtime.node_facts import NodeMetrics
from conversations.realtime.readiness import Readiness
from conversations.realtime.rollback_watch import RollbackWatch
from conversations.realtime.server_runtime import ServerRuntime

pytestmark = pytest.mark.django_db


def test_a_beat_is_one_row_that_is_told_again():
    lag = iter((0.5, 0.2))
    pulse = Heartbeat("recorder", lambda: {"lag_s": next(lag)})

    pulse.beat()
    pulse.beat()

    ((node, is_alive),) = node_heartbeat.known_nodes()
    facts = json.loads(node.facts)
    assert (node.kind, is_alive, facts["lag_s"]) == ("recorder", True, 0.2)
    assert abs(facts["clock_skew_ms"]) < 1000


def test_who_stopped_telling_is_gone_and_who_ended_in_order_is_not_there():
    silent, ended = Heartbeat("web", dict), Heartbeat("worker", dict)
    ended.name += "-2"
    silent.beat()
    ended.beat()

    Node.objects.filter(name=silent.name).update(seen_at=database_now() - 30_000_000)
    ended.stop()

    ((node, is_alive),) = node_heartbeat.known_nodes()
    assert (node.name, is_alive) == (silent.name, False)


def test_a_beat_leaves_a_new_epoch_to_who_tells_the_open_sockets_of_it():
    engine = ServerRuntime()
    before = engine.hub.epoch = epoch.current()
    epoch.change(before)

    NodeMetrics(engine).facts()

    assert epoch.current() != before
    assert engine.hub.epoch == before, "following the epoch sees no change any more, and no socket is closed"


def test_a_web_node_whose_database_goes_away_while_it_starts_begins_anew(monkeypatch, tmp_path):
    engine, away = ServerRuntime(), [DatabaseError("reset by peer"), Unavailable("the database cannot answer now")]
    states = []

    def look(watch):
        states.append(engine.state)
        if away:
            raise away.pop()

    monkeypatch.setattr(RollbackWatch, "look", look)
    monkeypatch.setattr("conversations.realtime.server_runtime.schema_state.is_behind", lambda: False)
    monkeypatch.setattr("conversations.realtime.server_runtime.epoch.current", lambda: "e1")
    monkeypatch.setattr("conversations.core.schema_state.POLL_S", 0.01)

    asyncio.run(asyncio.wait_for(engine._until_prepared(RollbackWatch(tmp_path)), 60))

    assert engine.hub.epoch == "e1"
    assert states[0] == "starting"
    assert states[1] == "the database cannot answer now"
    assert "reset by peer" in states[2]


def test_a_look_that_fails_after_its_answer_was_given_leaves_no_unretrieved_error(monkeypatch):
    errors, ends = [], threading.Event()

    def fail_late(readiness):
        ends.wait(30)
        raise Unavailable("couldn't get a connection")

    monkeypatch.setattr(Readiness, "_ask", fail_late)
    monkeypatch.setattr("conversations.realtime.readiness.PATIENCE", 0.01)

    async def look():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["message"]))
        readiness = Readiness(ServerRuntime())
        database = (await readiness.parts())["database"]
        ends.set()
        await asyncio.wait([readiness._looking])
        return database

    database = asyncio.run(look())
    gc.collect()

    assert database.startswith("no answer within")
    assert errors == []
