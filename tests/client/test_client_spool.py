"""The spool on disk: order, bounds, torn lines, slots of several processes."""

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from switchboard.api import Api
from switchboard.errors import Refused, SpoolFull
from switchboard.sender import Sender
from switchboard.spool import Spool
from tests.support.live import until

PLENTY = {"max_bytes": 1 << 30, "max_messages": 1 << 20}
FORKING = """
import os, sys
from pathlib import Path
from switchboard.spool import Spool

folder, ready = Path(sys.argv[1]), os.pipe()
spool = Spool(folder, max_bytes=1 << 20, max_messages=100)
spool.append(b'{"n":1}')
if os.fork():
    os.read(ready[0], 1)
    os._exit(Spool(folder, max_bytes=1 << 20, max_messages=100).messages)  # 0: its slot is still its own
os.write(ready[1], b"1")
sys.stdin.read()
"""


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """An empty spool."""
    spool = Spool(tmp_path, **PLENTY)
    yield spool
    spool.close()


def lines(*numbers: int) -> list[bytes]:
    """Make some messages."""
    return [b'{"n":%d}' % n for n in numbers]


def fill(spool: Spool, *numbers: int) -> None:
    """Append some messages."""
    for line in lines(*numbers):
        spool.append(line)


def test_first_in_is_first_out(spool: Spool) -> None:
    fill(spool, 1, 2, 3)

    assert spool.first(2, 1000) == lines(1, 2)
    spool.done(lines(1, 2))
    assert spool.first(2, 1000) == lines(3)


def test_one_large_message_is_answered_alone(spool: Spool) -> None:
    spool.append(b"x" * 1000)
    fill(spool, 1)

    assert spool.first(10, 100) == [b"x" * 1000]


def test_reopened_spool_has_what_waits(spool: Spool, tmp_path: Path) -> None:
    fill(spool, 1, 2)
    spool.close()

    again = Spool(tmp_path, **PLENTY)

    assert (again.messages, again.bytes) == (2, 16)
    assert again.first(10, 1000) == lines(1, 2)
    again.close()


class HangingServer:
    """It takes a request, and answers none until it is told to."""

    def __init__(self) -> None:
        self.has_request, self.answers = threading.Event(), threading.Event()

    def publish_kept(self, lines: list[bytes]) -> list[None]:
        """Accept all messages."""
        self.has_request.set()
        assert self.answers.wait(60)
        return [None] * len(lines)

    publish = publish_kept


def test_what_is_on_its_way_is_saved_before_what_waits_behind_it(spool: Spool, tmp_path: Path) -> None:
    server = HangingServer()
    sender = Sender(cast(Api, server), spool)
    first, second = lines(1, 2)
    with ThreadPoolExecutor(2) as threads:
        sent = [threads.submit(sender.send, first)]
        assert server.has_request.wait(60)
        sent.append(threads.submit(sender.send, second))
        until(lambda: sender.waiting == 2, what="both to wait")

        sender.save()

        saved = (tmp_path / "0.jsonl").read_bytes()
        server.answers.set()
        assert [future.result(60) for future in sent] == [None, None]
    sender.close(60)
    assert saved == first + b"\n" + second + b"\n"


def test_torn_last_line_is_told_and_cut_off(spool: Spool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(spool, 1)
    spool.close()
    with (tmp_path / "0.jsonl").open("ab") as file:
        file.write(b'{"n":')

    again = Spool(tmp_path, **PLENTY)
    fill(again, 2)

    assert again.first(10, 1000) == lines(1, 2)
    assert "ends in the middle of a message (5 bytes" in caplog.text
    again.close()


@pytest.mark.parametrize("bounds", [{"max_bytes": 16, "max_messages": 100}, {"max_bytes": 1000, "max_messages": 2}])
def test_bound_is_kept_and_room_comes_back(tmp_path: Path, bounds: dict[str, int]) -> None:
    spool = Spool(tmp_path, **bounds)
    fill(spool, 1, 2)

    with pytest.raises(SpoolFull):
        fill(spool, 3)
    spool.done(lines(1))
    fill(spool, 3)

    assert spool.first(10, 1000) == lines(2, 3)
    spool.close()


def test_full_disk_is_a_full_spool_and_tears_nothing(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(spool, 1)
    monkeypatch.setattr("switchboard.spool.os.fsync", _no_space)

    with pytest.raises(SpoolFull):
        fill(spool, 2)
    monkeypatch.undo()
    fill(spool, 3)

    assert spool.first(10, 1000) == lines(1, 3)


def _no_space(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_processes_have_slots_of_their_own(spool: Spool, tmp_path: Path) -> None:
    other = Spool(tmp_path, **PLENTY)

    fill(spool, 1)
    fill(other, 2)

    assert (spool.first(10, 1000), other.first(10, 1000)) == (lines(1), lines(2))
    other.close()


def test_what_two_ended_processes_left_is_taken_over_by_one(
    spool: Spool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "switchboard")
    other = Spool(tmp_path, **PLENTY)
    fill(spool, 1)
    fill(other, 2, 3)
    spool.close()
    other.close()

    heir = Spool(tmp_path, **PLENTY)

    assert heir.first(10, 1000) == lines(1, 2, 3)
    assert (heir.messages, heir.bytes) == (3, 24)
    assert (tmp_path / "1.jsonl").read_bytes() == b""
    assert "3 messages from an earlier process are waiting" in caplog.text
    heir.close()


def test_living_process_keeps_its_slot(spool: Spool, tmp_path: Path) -> None:
    fill(spool, 1)

    other = Spool(tmp_path, **PLENTY)

    assert other.messages == 0
    other.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_slot_of_an_ended_process_is_free_though_its_fork_lives(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", FORKING, str(tmp_path)], stdin=subprocess.PIPE) as program:
        assert program.wait(60) == 0

        heir = Spool(tmp_path, **PLENTY)

        assert heir.first(10, 1000) == lines(1)
        heir.close()


def test_refused_is_readable(spool: Spool) -> None:
    spool.set_aside(b'{"n":1}', Refused("no such thing", code="nope"))
    spool.set_aside(b"\xff torn", Refused("no JSON"))

    first, second = spool.refused.read_text().splitlines()
    assert '"code": "nope"' in first
    assert '"message": {"n": 1}' in first
    assert "torn" in second


def test_a_refusal_that_is_cut_short_leaves_no_half_line(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.set_aside(b'{"n":1}', Refused("no such thing"))
    with monkeypatch.context() as full:
        full.setattr("switchboard.spool.os.fsync", _no_space)
        with pytest.raises(OSError, match="No space left"):
            spool.set_aside(b'{"n":2}', Refused("no such thing"))
    spool.set_aside(b'{"n":3}', Refused("no such thing"))

    assert [json.loads(line)["message"]["n"] for line in spool.refused.read_text().splitlines()] == [1, 3]


def test_a_message_that_stays_is_the_oldest_and_takes_no_space(spool: Spool, tmp_path: Path) -> None:
    fill(spool, *range(5))
    size = (tmp_path / "0.jsonl").stat().st_size
    batch = spool.first(3, 1 << 20)

    spool.done(batch, but=batch[:1])

    assert spool.first(9, 1 << 20) == lines(0, 3, 4)
    assert (spool.messages, spool.bytes) == (3, sum(len(line) + 1 for line in lines(0, 3, 4)))
    assert (tmp_path / "0.jsonl").stat().st_size == size


def test_a_file_that_a_full_disk_cannot_copy_serves_on(
    spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.compact_at = 1
    fill(spool, *range(5))
    monkeypatch.setattr("switchboard.spool.os.fsync", _no_space)

    spool.done(spool.first(4, 1 << 20))

    assert spool.first(9, 1 << 20) == lines(4)
    assert not (tmp_path / "0.new").exists()
    monkeypatch.undo()
    fill(spool, 5)
    spool.done(spool.first(2, 1 << 20))
    assert (spool.messages, (tmp_path / "0.jsonl").stat().st_size) == (0, 0)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 12).map(lambda n: max(0, n - 4)), max_size=20))
def test_spool_is_a_queue_whatever_is_done_to_it(tmp_path_factory: pytest.TempPathFactory, steps: list[int]) -> None:
    """Append n messages; at 0 send up to seven. It compacts early."""
    folder = tmp_path_factory.mktemp("queue")
    spool, model, number = Spool(folder, **PLENTY), list[bytes](), 0
    spool.compact_at = 64
    for step in steps:
        new = lines(*range(number, number + step))
        number += step
        for line in new:
            spool.append(line)
        model += new
        if not step:
            sent = spool.first(7, 1 << 20)
            assert sent == model[:7]
            spool.done(sent)
            del model[:7]
        assert (spool.messages, spool.bytes) == (len(model), sum(len(line) + 1 for line in model))
    assert spool.first(1 << 20, 1 << 20) == model
    spool.close()
