"""A long wait of `HttpBus` on an empty topic, on which more messages come than one read returns."""

from typing import Any

import pytest

from switchboard import BusMessage, HttpBus, UnknownPosition
from switchboard.api import Api

TOPIC = "stream:c"


@pytest.mark.parametrize(("burst", "is_known"), [(499, True), (1000, False)])
def test_a_wait_skips_nothing_of_a_burst(monkeypatch: pytest.MonkeyPatch, burst: int, is_known: bool) -> None:
    stored: list[BusMessage] = []

    def read(_: Api, topic: str, last_id: Any, limit: int, block_ms: int) -> list[BusMessage]:
        if block_ms:
            stored.extend(BusMessage(topic, {"n": n}, str(n)) for n in range(burst))
            return []
        return stored[-limit:]

    monkeypatch.setattr(Api, "read", read)
    bus = HttpBus("http://127.0.0.1:9", "t")
    if is_known:
        assert [message.id for message in bus.read_blocking(TOPIC, None, 2, 60_000)] == ["0", "1"]
    else:
        with pytest.raises(UnknownPosition, match="500 messages or more came at once"):
            bus.read_blocking(TOPIC, None, 2, 60_000)
    bus.close()
