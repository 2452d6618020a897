"""An import that came to be visible is on open pages at once, without anybody's own look."""

import asyncio
import json

import pytest

from conversations.core import principals
from conversations.core.db_threads import with_connection
from conversations.import_export.detect_format import recordings
from conversations.import_export.import_file import import_recordings
from conversations.import_export.import_report import ImportReport
from conversations.import_export.staged_import import StagedImport
from conversations.realtime import hub, state_topics
from conversations.realtime.hub import Hub
from conversations.realtime.socket_writer import SocketWriter
from conversations.realtime.state_topics import ConversationListTopic, StateSubscription
from tests.support.protocol_client import Client, Line
from tests.support.recorded import OWN

pytestmark = pytest.mark.django_db(transaction=True)


def bring_file(key):
    report = ImportReport([].append, is_strict=True)
    intake = StagedImport(principals.import_principal("test"))
    return import_recordings(recordings(OWN / "chat.json", report), intake, report, key=key, progress=lambda *_: None)


def test_an_import_rings_for_its_page_and_for_the_list(monkeypatch):
    monkeypatch.setattr(hub, "HEAL_EVERY", 3600)
    monkeypatch.setattr(state_topics, "HEAL_EVERY", 3600)
    listed = []

    async def send(message):
        listed.extend(row["key"] for row in json.loads(message["text"])["rows"])

    async def work():
        running, fleet = Hub(epoch="e"), ConversationListTopic()
        running.start()
        fleet.start()
        line = Line(running, Client(), "brought")
        line.connect()
        view = StateSubscription(fleet, SocketWriter(send, None), failed=lambda error: None)
        async with asyncio.timeout(60):
            while not line.subscription.is_up_to_date:  # noqa: ASYNC110  # the subscription tells nobody
                await asyncio.sleep(0.005)
            items = await asyncio.to_thread(with_connection, bring_file, "brought")
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
