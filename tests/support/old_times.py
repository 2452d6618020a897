"""A record in which times do not rise with ids: forks of old conversations, imports, a clock that was set back."""

import random
import sys
import time

import pytest

from conversations.conversation import fork
from conversations.events import log
from conversations.events.log.import_staging import StagedBatch
from conversations.models import Conversation, User
from tests.support import searching, toolcalls

DAY_US = 86_400_000_000
NOW = 1_790_000_000_000_000  # µs; every other moment is told from here


class Clock:
    """Stands in for `time` where events get their moment."""

    def __init__(self) -> None:
        self.now = NOW

    def time_ns(self) -> int:
        """Return the moment, a little later each time."""
        self.now += 1_000_000
        return self.now * 1000

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)


def set_clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Have events take their moments from a clock of the test's."""
    clock = Clock()
    monkeypatch.setattr(sys.modules["conversations.events.log.append"], "time", clock)
    return clock


def record(monkeypatch: pytest.MonkeyPatch, by: User) -> None:
    """Store a record of two months, in an order of ids that is not the one of its times."""
    clock, dice = set_clock(monkeypatch), random.Random(4)
    for days, key in ((60, "old"), (30, "older"), (2, "late"), (0, "today")):
        clock.now = NOW - days * DAY_US
        for number in range(12):
            _say(key, number, dice)
    clock.now = NOW - 45 * DAY_US  # a clock that was set back
    for number in range(6):
        _say("behind", number, dice)
    clock.now = NOW
    for key, upto in (("old", 9), ("older", 15), ("old", 12)):
        fork.fork(by, key, upto)
    brought, hidden = StagedBatch(), StagedBatch()
    for batch, key in ((brought, "brought"), (hidden, "hidden")):
        staged = batch.stage(key)
        clock.now = NOW - 20 * DAY_US
        searching.say(staged, "refund of a staged one", "quiet", chained_as=batch.chained_as)
        log.append(toolcalls.call(staged, 7, agent="Desk"), chained_as=batch.chained_as)
    clock.now = NOW + DAY_US
    _say("today", 99, dice)
    brought.publish()


def _say(key: str, number: int, dice: random.Random) -> None:
    searching.say(key, dice.choice(["refund", "a refund for Ann", "quiet", "nothing to refund"]))
    if number % 3 == 0:
        status = dice.choice(["success", "error"])
        log.append(
            toolcalls.call(key, number, status=status, agent=dice.choice(["Desk", "Clerk"]), args={"q": "refund"})
        )


def conversations() -> list[str]:
    """Return the keys of all that are to be seen."""
    return list(Conversation.objects.visible().order_by("key").values_list("key", flat=True))
