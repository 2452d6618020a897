"""An import that came to be visible is on open pages at once, without anybody's own look."""

import asyncio
import json

import pytest

from conversations import hub, principals, states
from conversations.hub import Hub
from conversations.recordings.formats import recordings
from conversations.recordings.importing import bring
from conversations.recordings.intake import Intake
from conversations.recordings.trouble import Trouble
from conversations.states import Fleet, StateSubscription
from conversations.subscription import Wire
from conversations.threads import lent
from tests.protocol_client import Client, Line
from tests.recorded import OWN

pytestmark = pytest.mark.django_db(transaction=True)


def bring_file(key):
    trouble = Trouble([].append, is_strict=True)
    intake = Intake(principals.of_import("test"))
    return bring(recordings(OWN / "chat.json", trouble), intake, trouble, key=key, progress=lambda *_: None)


def test_an_import_rings_for_its_page_and_for_the_list(monkeypatch):
    monkeypatch.setattr(hub, "HEAL_EVERY", 3600)
    monkeypatch.setattr(states, "HEAL_EVERY", 3600)
    listed = []

    async def send(message):
        listed.extend(row["key"] for row in json.loads(message["text"])["rows"])

    async def work():
        running, fleet = Hub(epoch="e"), Fleet()
        running.start()
        fleet.start()
        line = Line(running, Client(), "brought")
        line.connect()
        view = StateSubscription(fleet, Wire(send, None), failed=lambda error: None)
        async with asyncio.timeout(10):
            while not line.subscription.is_live:  # noqa: ASYNC110  # the subscription tells nobody
                await asyncio.sleep(0.005)
            items = await asyncio.to_thread(lent, bring_file, "brought")
            while line.client.last < items[0].events or "brought" not in listed:
                line.deliver()
                await asyncio.sleep(0.005)
        view.close()
        line.cut()
        await fleet.stop()
        await running.stop()
        running.readers.shutdown()

    asyncio.run(work())

    assert "brought" in listed
