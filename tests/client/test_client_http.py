"""`HttpBus` against a real server, through a proxy that goes away, hangs and cuts answers off."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from switchboard import BusMessage, Closed, HttpBus, IdReused, Refused, SpoolFull, Unreachable
from tests.support.answering import Answer, answering
from tests.support.cutting_proxy import CuttingProxy
from tests.support.live import Server, until


@pytest.fixture
def bus(proxy: CuttingProxy, served_token: str, tmp_path: Path) -> Iterator[HttpBus]:
    """An agent's bus, with a spool."""
    bus = HttpBus(proxy.url, served_token, spool_dir=tmp_path, timeout_s=2)
    yield bus
    bus.close(0)


def message(topic: str, n: int, **more: str) -> BusMessage:
    """Make a message that says its number."""
    return BusMessage(topic, {"event": "log", "conversation_id": topic[5:], "n": n}, **more)


def publish(bus: HttpBus, topic: str, *numbers: int) -> list[str]:
    """Publish some, one after the other; return their ids."""
    return [bus.publish(topic, message(topic, n)) for n in numbers]


def stored(served: Server, topic: str) -> list[str]:
    """Return the bus ids of a topic as the database has them, in order."""
    with served.database() as database:
        return [
            row[0]
            for row in database.execute("SELECT bus_id FROM conversations_post WHERE topic=? ORDER BY id", [topic])
        ]


@pytest.mark.slow
def test_published_is_stored_when_publish_returns(bus: HttpBus, served: Server, topic: str) -> None:
    ids = publish(bus, topic, 1, 2, 3)

    assert stored(served, topic) == ids
    assert bus.waiting == 0


def test_connection_is_kept(bus: HttpBus, proxy: CuttingProxy, topic: str) -> None:
    publish(bus, topic, *range(20))

    assert proxy.connections == 1


def test_threads_that_publish_at_once_share_requests_and_keep_their_order(
    bus: HttpBus, served: Server, topic: str
) -> None:
    topics: dict[int, list[str]] = {}
    threads = [
        threading.Thread(target=lambda n=n: topics.update({n: publish(bus, topic, *range(25))})) for n in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    there = stored(served, topic)
    assert len(there) == 200
    assert all([id_ for id_ in there if id_ in set(ids)] == ids for ids in topics.values())


def test_cut_answer_is_asked_for_again_and_stored_once(
    bus: HttpBus, proxy: CuttingProxy, served: Server, topic: str
) -> None:
    proxy.be("cutting")
    ids = publish(bus, topic, 1, 2, 3)
    until(lambda: proxy.cut >= 2, what="answers to be cut off")
    assert stored(served, topic) != []

    proxy.be("there")

    assert bus.flush(10)
    assert stored(served, topic) == ids


@pytest.mark.parametrize("state", ["away", "hanging"])
def test_messages_wait_on_disk_and_come_in_order_before_newer_ones(
    bus: HttpBus, proxy: CuttingProxy, served: Server, topic: str, state: str
) -> None:
    publish(bus, topic, 0)
    proxy.be(state)  # type: ignore[arg-type]
    waiting = publish(bus, topic, *range(1, 50))
    assert bus.waiting == 49
    assert stored(served, topic) == stored(served, topic)[:1]

    proxy.be("there")
    newer = publish(bus, topic, 50)

    assert bus.flush(10)
    assert stored(served, topic)[1:] == waiting + newer
    assert bus.waiting == 0


def test_spooling_waits_for_a_hung_server_once_only(bus: HttpBus, proxy: CuttingProxy, topic: str) -> None:
    proxy.be("hanging")
    publish(bus, topic, 1)

    start = time.monotonic()
    publish(bus, topic, *range(20))

    assert time.monotonic() - start < 20  # twenty waits of two seconds would be 40


def test_next_process_sends_what_a_stopped_one_left(
    proxy: CuttingProxy, served: Server, served_token: str, topic: str, tmp_path: Path
) -> None:
    proxy.be("away")
    before = HttpBus(proxy.url, served_token, spool_dir=tmp_path)
    ids = publish(before, topic, *range(10))
    before.close(0)
    proxy.be("there")

    with HttpBus(proxy.url, served_token, spool_dir=tmp_path) as after:
        ids += publish(after, topic, 10)
        assert after.flush(10)

    assert stored(served, topic) == ids


def test_full_spool_refuses_and_keeps_what_it_has(
    proxy: CuttingProxy, served: Server, served_token: str, topic: str, tmp_path: Path
) -> None:
    with HttpBus(proxy.url, served_token, spool_dir=tmp_path, spool_messages=3) as bus:
        proxy.be("away")
        ids = publish(bus, topic, 1, 2, 3)
        late = message(topic, 4)
        with pytest.raises(SpoolFull):
            bus.publish(topic, late)

        proxy.be("there")
        assert bus.flush(10)
        ids.append(bus.publish(topic, late))

        assert stored(served, topic) == ids


def test_refused_message_is_moved_aside_and_holds_up_nothing(
    bus: HttpBus, proxy: CuttingProxy, served: Server, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = publish(bus, topic, 1)
    proxy.be("away")
    publish(bus, topic, 2)
    bus.publish(topic, message(topic, 99, id=first[0]))
    publish(bus, topic, 3)

    proxy.be("there")
    assert bus.flush(10)

    assert len(stored(served, topic)) == 3
    (refused,) = [json.loads(line) for line in (tmp_path / "0.refused.jsonl").read_text().splitlines()]
    assert (refused["error"]["code"], refused["message"]["payload"]["n"]) == ("id_reused", 99)
    assert "0.refused.jsonl" in caplog.text


def test_refused_message_that_the_disk_cannot_take_holds_up_nothing(
    bus: HttpBus, proxy: CuttingProxy, served: Server, topic: str, tmp_path: Path
) -> None:
    aside = tmp_path / "0.refused.jsonl"
    aside.mkdir()  # as a full disk: nothing can be appended
    first = publish(bus, topic, 1)
    proxy.be("away")
    publish(bus, topic, 2)
    bus.publish(topic, message(topic, 99, id=first[0]))
    publish(bus, topic, *range(3, 8))

    proxy.be("there")
    until(lambda: len(stored(served, topic)) == 7, what="what came after the refused message")
    newer = publish(bus, topic, 8)
    until(lambda: stored(served, topic)[-1:] == newer, what="a newer message")
    until(lambda: bus.waiting == 1, what="the refused message alone to be left")

    aside.rmdir()
    assert bus.flush(20)
    (refused,) = [json.loads(line) for line in aside.read_text().splitlines()]
    assert refused["message"]["payload"]["n"] == 99


def test_message_that_its_token_may_not_send_is_moved_aside_and_holds_up_nothing(
    proxy: CuttingProxy, served: Server, topic: str, tmp_path: Path
) -> None:
    proxy.be("away")
    with HttpBus(proxy.url, served.token("Front-desk", role="agent"), spool_dir=tmp_path) as bus:
        bus.publish(topic, BusMessage(topic, message(topic, 1).payload | {"agent": "Other"}))
        proxy.be("there")
        assert bus.flush(10)
        later = publish(bus, topic, 2)

    (refused,) = [json.loads(line) for line in (tmp_path / "0.refused.jsonl").read_text().splitlines()]
    assert (refused["error"]["code"], refused["message"]["payload"]["n"]) == ("not_allowed", 1)
    assert stored(served, topic) == later


def test_unreadable_line_of_a_spool_is_moved_aside_and_holds_up_nothing(
    proxy: CuttingProxy, served: Server, served_token: str, topic: str, tmp_path: Path
) -> None:
    proxy.be("away")
    before = HttpBus(proxy.url, served_token, spool_dir=tmp_path)
    ids = publish(before, topic, 1, 2)
    before.close(0)
    first, second = (tmp_path / "0.jsonl").read_bytes().splitlines()
    (tmp_path / "0.jsonl").write_bytes(b"\n".join([first, b"\0\0]}[{\xff", b"", second, b""]))
    proxy.be("there")

    with HttpBus(proxy.url, served_token, spool_dir=tmp_path) as after:
        assert after.flush(10)

    assert stored(served, topic) == ids
    assert len((tmp_path / "0.refused.jsonl").read_text().splitlines()) == 2


def test_refusal_of_a_direct_message_is_raised(bus: HttpBus, topic: str) -> None:
    bus.publish(topic, message(topic, 1, id="once"))

    with pytest.raises(IdReused):
        bus.publish(topic, message(topic, 2, id="once"))
    with pytest.raises(Refused) as caught:
        bus.publish("chat:Triage", BusMessage("chat:Triage", {"content": "names no conversation"}))
    assert caught.value.field == "payload.conversation_id"
    assert bus.waiting == 0


def test_wrong_token_is_refused_and_nothing_waits(proxy: CuttingProxy, topic: str, tmp_path: Path) -> None:
    with HttpBus(proxy.url, "sb_wrong", spool_dir=tmp_path) as bus, pytest.raises(Refused) as caught:
        publish(bus, topic, 1)

    assert (caught.value.status, caught.value.code) == (401, "not_signed_in")
    assert bus.waiting == 0


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """The address of a program that is no Switchboard: it answers as an OpenAI-compatible server does."""
    body = b'{"error":{"message":"Unknown endpoint","type":"invalid_request_error"}}'
    with answering(lambda _: Answer(404, body)) as address:
        yield address


@pytest.mark.slow
@pytest.mark.parametrize("why", ["wrong token", "not allowed", "another program"])
@pytest.mark.parametrize("count", [1, 3])
def test_what_was_acknowledged_is_kept_while_the_token_or_the_address_is_wrong(
    proxy: CuttingProxy, served: Server, served_token: str, topic: str, elsewhere: str, tmp_path: Path,
    caplog: pytest.LogCaptureFixture, why: str, count: int,
) -> None:  # fmt: skip
    proxy.be("away")
    with HttpBus(proxy.url, served_token, spool_dir=tmp_path) as bus:
        ids = publish(bus, topic, *range(count))
    proxy.be("there")
    url = elsewhere if why == "another program" else proxy.url
    token = served.token(f"viewer-{count}", role="viewer") if why == "not allowed" else "sb_wrong"

    with HttpBus(url, token, spool_dir=tmp_path) as bus:
        until(lambda: "waiting for the server" in caplog.text, what="a complaint")
        assert bus.waiting == count
    assert not (tmp_path / "0.refused.jsonl").exists()

    with HttpBus(proxy.url, served_token, spool_dir=tmp_path) as bus:
        assert bus.flush(10)
    assert stored(served, topic) == ids


@pytest.mark.parametrize("count", [1, 3])
def test_what_nobody_sends_again_is_spooled_while_the_token_is_revoked(
    proxy: CuttingProxy, served: Server, served_token: str, topic: str, tmp_path: Path, count: int
) -> None:
    messages = [message(topic, n) for n in range(count)]
    bus = HttpBus(proxy.url, "sb_revoked", spool_dir=tmp_path)

    outcomes = bus.publish_all(messages, is_kept=True)

    assert (outcomes, bus.waiting) == ([None] * count, count)
    bus.close(0)
    with HttpBus(proxy.url, served_token, spool_dir=tmp_path) as bus:
        assert bus.flush(10)
    assert stored(served, topic) == [message.id for message in messages]


def test_what_nobody_sends_again_is_spooled_without_what_is_rejected_by_itself(
    bus: HttpBus, served: Server, topic: str
) -> None:
    bus.publish(topic, message(topic, 1, id="once"))

    outcomes = bus.publish_all([message(topic, 2, id="once"), message(topic, 3, id="new")], is_kept=True)

    assert [type(outcome) for outcome in outcomes] == [IdReused, type(None)]
    assert (bus.waiting, stored(served, topic)) == (0, ["once", "new"])


def test_several_are_refused_to_who_can_send_them_again(proxy: CuttingProxy, topic: str, tmp_path: Path) -> None:
    with HttpBus(proxy.url, "sb_revoked", spool_dir=tmp_path) as bus:
        outcomes = bus.publish_all([message(topic, 1), message(topic, 2)])

    assert [type(outcome) for outcome in outcomes] == [Refused, Refused]
    assert bus.waiting == 0


def test_without_a_spool_nobody_there_is_told(
    proxy: CuttingProxy, served: Server, served_token: str, topic: str
) -> None:
    with HttpBus(proxy.url, served_token) as bus:
        proxy.be("away")
        again = message(topic, 1)
        with pytest.raises(Unreachable):
            bus.publish(topic, again)

        proxy.be("there")

        assert [bus.publish(topic, again)] == stored(served, topic)


@pytest.mark.parametrize("payload", [{"n": float("nan")}, {"n": object()}, {"n": "x" * (1 << 20)}, ["a list"]])
def test_what_is_no_payload_is_refused_before_it_waits(bus: HttpBus, topic: str, payload: object) -> None:
    with pytest.raises(Refused) as caught:
        bus.publish(topic, BusMessage(topic, payload))  # type: ignore[arg-type]

    assert caught.value.field == "payload"
    assert bus.waiting == 0


def test_closed_bus_says_so(proxy: CuttingProxy, served_token: str, topic: str) -> None:
    bus = HttpBus(proxy.url, served_token)
    bus.close()

    with pytest.raises(Closed):
        publish(bus, topic, 1)


def test_two_buses_share_a_folder(
    proxy: CuttingProxy, served: Server, served_token: str, topic: str, tmp_path: Path
) -> None:
    proxy.be("away")
    with (
        HttpBus(proxy.url, served_token, spool_dir=tmp_path) as bus,
        HttpBus(proxy.url, served_token, spool_dir=tmp_path) as other,
    ):
        ids = [publish(bus, topic, 1), publish(other, topic, 2), publish(bus, topic, 3)]

        proxy.be("there")
        assert bus.flush(10)
        assert other.flush(10)

    assert sorted(stored(served, topic)) == sorted(id_ for some in ids for id_ in some)


def test_attempts_are_told(bus: HttpBus, proxy: CuttingProxy, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "switchboard")
    proxy.be("away")

    publish(bus, topic, 1)

    until(lambda: "1 messages are waiting for the server" in caplog.text, what="a warning")


def test_fork_needs_a_bus_of_its_own(bus: HttpBus, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchboard.http_bus.os.getpid", lambda: -1)

    with pytest.raises(Closed, match="fork"):
        publish(bus, topic, 1)
    with pytest.raises(Closed, match="fork"):
        bus.read(topic)
    monkeypatch.undo()
