"""Texts and numbers that no column can hold are refused, on either database: never a 500."""

import json

import pytest
from django.db import connection, transaction

from conversations.core import principals
from conversations.core.url_converters import to_url
from conversations.events import log
from conversations.events.epoch import HighWater, current
from conversations.models import Event, ToolCall
from tests.support.cast import PASSWORD, cast, client_of
from tests.support.unchecked import from_text

pytestmark = pytest.mark.django_db(transaction=True)
UNFIT = ("a\0b", "\0", "9" * 40, "-" + "9" * 30, "%", "_", "\\", "'")


@pytest.fixture
def admin():
    return client_of(cast()["admin"])


@pytest.mark.slow
def test_filters_take_any_text(admin):
    of_audit = ("who", "verb", "acting_as", "target", "conversation")
    filters = dict.fromkeys(("/audit/", "/api/v1/audit"), of_audit)
    lists = ("/", "/tokens/", "/ops/", "/ops/quarantine/", "/api/v1/conversations")
    filters |= dict.fromkeys(lists, ("q", "participant", "stream", "revoked"))

    for path, names in filters.items():
        queries = [dict.fromkeys(some, text) for some in (names, ("before",)) for text in UNFIT]
        assert {admin.get(path, query).status_code for query in queries} <= {200, 400}, path


@pytest.mark.slow
def test_addresses_take_any_text(admin):
    paths = [f"/conversations/{to_url(text)}/" for text in UNFIT]
    paths += [f"/api/v1/conversations/{to_url(text)}/events" for text in UNFIT]

    assert {admin.get(path).status_code for path in paths} <= {400, 404}
    assert {admin.get("/api/v1/read-markers", {"ids": text}).status_code for text in UNFIT} <= {200, 400}
    assert {admin.post(f"/people/{text}/activity/", {"active": "no"}).status_code for text in UNFIT} <= {400, 404}


def test_bodies_take_any_text(admin):
    markers = [json.dumps({"conversation_id": text, "last_seq": 1}) for text in UNFIT]
    moved = [admin.post("/api/v1/read-markers", marker, content_type="application/json") for marker in markers]
    tried = [client_of().post("/sign-in/", {"username": text, "password": PASSWORD}) for text in UNFIT]

    assert {answer.status_code for answer in moved} <= {400, 404}
    assert max(answer.status_code for answer in tried) < 500


def internal_event(key, **fields):
    return log.from_internal(key, fields, principals.SYSTEM)


def test_a_nul_and_half_a_character_in_a_body_stay_as_they_came():
    body = '{"event": "log", "text": "a\\u0000b \\ud800", "id": "i\\u0000d"}'
    log.append([from_text("stream:c", body)])

    (stored,) = log.read_after("c", 0)
    assert stored.body == body
    assert stored.event_id == "i\ufffdd"


def test_a_call_id_longer_than_an_index_can_hold_finds_its_result():
    long = "".join(chr(33 + n * 7919 % 90) for n in range(20_000))
    step = {"event": "tool_step", "name": "look", "tool_call_id": long}

    log.append([internal_event("c", **step, status="start"), internal_event("c", **step, status="success")])

    assert ToolCall.objects.get().status == "done"


def test_a_record_behind_what_the_file_remembers_begins_a_new_epoch(tmp_path):
    log.append([internal_event("c", event="log") for _ in range(5)])
    water, before = HighWater(tmp_path), current()
    water.write()
    assert not water.check()

    with connection.cursor() as cursor:  # as an older copy has it
        if connection.vendor == "sqlite":
            cursor.execute("UPDATE sqlite_sequence SET seq=1 WHERE name='conversations_event'")
        else:
            cursor.execute("SELECT setval('conversations_event_id_seq', 1)")
        Event.objects.all().delete()

    water.write()  # it was put back between the look and the note: the note must not hide it
    assert water.check()
    assert current() != before


def test_ids_that_were_taken_back_do_not_make_the_record_look_older(tmp_path):
    log.append([internal_event("c", event="log")])
    with transaction.atomic():
        log.append([internal_event("c", event="log") for _ in range(50)])
        HighWater(tmp_path).write()
        transaction.set_rollback(True)

    assert not HighWater(tmp_path).check()
