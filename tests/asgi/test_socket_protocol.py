"""Whatever is dropped, doubled, swapped, slow or unheard: the client's view becomes the stored history, once each."""

import asyncio
import json

import pytest
from django.core.management import call_command
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from conversations.core import principals
from conversations.core.db_threads import with_connection
from conversations.events import log
from conversations.realtime import feed, hub
from conversations.realtime.hub import Hub
from tests.support.databases import IS_POSTGRESQL
from tests.support.protocol_client import Client, Line
from tests.support.tiers import rounds
from tests.support.unchecked import unchecked

pytestmark = pytest.mark.django_db(transaction=True)


def event(key, n):
    return unchecked(key, {"event": "log", "n": n}, principals.token_principal("t"))


class Following(RuleBasedStateMachine):
    """One conversation, one hub with a small ring, one client behind a bad line."""

    mode = "data"

    def __init__(self):
        super().__init__()
        call_command("flush", verbosity=0, interactive=False)
        self.loop = asyncio.new_event_loop()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(feed, "RING_FRAMES", 4)
        self.patch.setattr(hub, "HEAL_EVERY", 0.01)
        self.is_deaf = False
        self.patch.setattr(hub, "should_drop", lambda name: self.is_deaf)
        self.client, self.n = Client(), 0
        self.run(self._begin())

    async def _begin(self):
        self.hub = Hub(epoch="e")
        self.hub.start()
        self.line = Line(self.hub, self.client, "c", self.mode)
        self.line.connect()

    def run(self, work):
        return self.loop.run_until_complete(work)

    async def _append(self, count):
        await asyncio.to_thread(with_connection, log.append, [event("c", self.n + i) for i in range(count)])
        self.n += count

    async def _settle(self):
        """Be a good client on a good line until everything stored is here."""
        for _ in range(2000):
            self.line.room.set()
            self.line.deliver()
            if self.line.subscription is None or self.client.must_subscribe:
                self.line.connect()
            if self.client.last == self.n:
                return
            if self.client.last < self.n and not self.line.sent:
                self.line.subscription.send_head() if self.line.subscription else None
            await asyncio.sleep(0.005)
        raise AssertionError(f"stuck at {self.client.last} of {self.n}; {self.line.failure!r}")

    @rule(count=st.integers(1, 12))
    def append(self, count):
        self.run(self._append(count))

    @rule(count=st.integers(1, 6))
    def append_unheard(self, count):
        self.is_deaf = True
        self.run(self._append(count))
        self.is_deaf = False

    @rule()
    def breathe(self):
        self.run(asyncio.sleep(0.01))

    @rule()
    def deliver(self):
        self.line.deliver()

    @rule()
    def drop_a_frame(self):
        if self.line.sent:
            self.line.sent.pop(0)

    @rule()
    def double_a_frame(self):
        if self.line.sent:
            self.line.sent.insert(0, self.line.sent[0])

    @rule()
    def swap_frames(self):
        self.line.sent.reverse()

    @rule()
    def stop_reading(self):
        self.line.room.clear()

    @rule()
    def cut(self):
        self.line.cut()

    @rule()
    def reconnect(self):
        self.run(self._connect())

    async def _connect(self):
        self.line.connect()

    @rule()
    def catch_up(self):
        self.run(self._settle())

    @invariant()
    def nothing_is_doubled_or_out_of_order(self):
        assert [seq for seq, _ in self.client.seen] == list(range(1, len(self.client.seen) + 1))

    async def _all_ended(self):
        """End what is left."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def teardown(self):
        try:
            self.run(self._settle())
            stored = [(e.seq, json.loads(e.body)) for e in log.read_after("c", 0, 100_000)]
            if self.mode == "data":
                assert self.client.seen == stored
            else:
                assert [seq for seq, _ in self.client.seen] == [seq for seq, _ in stored]
        finally:
            self.line.cut()
            self.run(self.hub.stop())
            self.run(self._all_ended())
            self.loop.close()
            self.patch.undo()


class FollowingHtml(Following):
    """The same with events drawn."""

    mode = "html"


LIMITS = settings(
    max_examples=8 if IS_POSTGRESQL else rounds(10, 25),  # the line is the same, only reading differs
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [Following, FollowingHtml])
def test_view_equals_history_on_a_bad_line(machine):
    run_state_machine_as_test(machine, settings=LIMITS)
