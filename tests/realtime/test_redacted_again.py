"""A server whose database is replaced by an older copy while it runs takes out again what had been redacted."""

from __future__ import annotations

import pytest
from django.db import transaction

from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.models import Event
from conversations.realtime.redaction_watch import RedactionWatch
from conversations.redaction import redact

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_older_copy_under_a_running_server_is_redacted_again(tmp_path):
    log.append([log.from_internal("talk", {"event": "log", "text": text}, SYSTEM) for text in ("secret", "hidden")])
    watch = RedactionWatch(tmp_path)
    redact.redact(SYSTEM, "talk", [1], "asked for")
    watch.look()
    with transaction.atomic():
        redact.redact(SYSTEM, "talk", [2], "asked for")
        watch.look()
        transaction.set_rollback(True)  # as an older copy in its place
    assert "hidden" in Event.objects.get(seq=2).body

    watch.look()

    assert "hidden" not in Event.objects.get(seq=2).body
