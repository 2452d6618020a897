"""A process tells of itself, and is gone when it stops telling."""

import json

import pytest

from conversations import epoch, nodes
from conversations.engine import Engine
from conversations.models import Node
from conversations.nodes import Pulse
from conversations.vitals import Vitals

pytestmark = pytest.mark.django_db


def test_a_beat_is_one_row_that_is_told_again():
    lag = iter((0.5, 0.2))
    pulse = Pulse("recorder", lambda: {"lag_s": next(lag)})

    pulse.beat()
    pulse.beat()

    ((node, is_alive),) = nodes.known()
    facts = json.loads(node.facts)
    assert (node.kind, is_alive, facts["lag_s"]) == ("recorder", True, 0.2)
    assert abs(facts["clock_skew_ms"]) < 1000


def test_who_stopped_telling_is_gone_and_who_ended_in_order_is_not_there():
    silent, ended = Pulse("web", dict), Pulse("worker", dict)
    ended.name += "-2"
    silent.beat()
    ended.beat()

    Node.objects.filter(name=silent.name).update(seen_at=nodes.database_time() - 30_000_000)
    ended.stop()

    ((node, is_alive),) = nodes.known()
    assert (node.name, is_alive) == (silent.name, False)


def test_a_beat_leaves_a_new_epoch_to_who_tells_the_open_sockets_of_it():
    engine = Engine()
    before = engine.hub.epoch = epoch.current()
    epoch.change(before)

    Vitals(engine).facts()

    assert epoch.current() != before
    assert engine.hub.epoch == before, "following the epoch sees no change any more, and no socket is closed"
