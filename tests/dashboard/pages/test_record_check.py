"""The whole record verified from the audit page: one check at a time, which everybody there can follow."""

import time

import pytest
from django.db import connection

from conversations.core.principals import SYSTEM
from conversations.events import log
from conversations.evidence import background_check, checkpoints
from conversations.evidence.checkpoints import Signer
from conversations.models import AuditEntry, Event, Meta, TreeLeaf
from tests.support.cast import client_of, person
from tests.support.databases import IS_POSTGRESQL
from tests.support.live import until

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/audit/record/"


@pytest.fixture
def auditor(settings, tmp_path):
    """The browser of an auditor, of a record that holds two events."""
    settings.DATA_DIR = tmp_path
    settings.CONFIG = settings.CONFIG.model_copy(update={"data_dir": tmp_path, "signing_key": tmp_path / "k.json"})
    log.append([log.from_internal("tram", {"event": "operator.note", "text": f"{n}"}, SYSTEM) for n in range(2)])
    browser = client_of(person("audrey", "auditor"))
    Meta.objects.filter(name=background_check.NAME).delete()
    return browser


def words(browser):
    return browser.get(f"{PAGE}?part=state").content.decode()


def test_a_check_says_what_it_found(auditor, monkeypatch):
    monkeypatch.setattr("conversations.evidence.authority.first_fault", lambda: "")  # people of tests are no entries
    assert "has not been verified from here yet" in words(auditor)

    assert auditor.post(PAGE).status_code == 302
    until(lambda: background_check.current().ended, what="the check to end")

    assert "2 events are intact." in words(auditor)
    assert "State and rights match the events and audit entries." in words(auditor)
    assert background_check.current().is_ok
    assert list(AuditEntry.objects.filter(target="record").order_by("seq").values_list("verb", "principal")) == [
        ("verify", "user:audrey")
    ]


def test_a_check_names_what_was_changed(auditor):
    Event.objects.filter(seq=2).update(body="{}")

    auditor.post(PAGE)
    until(lambda: background_check.current().ended, what="the check to end")

    assert "conversation &#39;tram&#39;, event 2: the body was changed after it was written" in words(auditor)
    assert not background_check.current().is_ok


def test_a_value_with_which_the_check_fails_is_a_fault_and_the_other_parts_are_checked(auditor, settings):
    checkpoints.make(Signer(settings.CONFIG.signing_key_path))
    TreeLeaf.objects.update(chain="zz")

    auditor.post(PAGE)
    until(lambda: background_check.current().ended, what="the check to end")

    assert "events: internal error: ValueError: non-hexadecimal number" in words(auditor)
    assert "signatures: the tree: " in words(auditor)
    assert not background_check.current().is_ok


@pytest.mark.parametrize("before", [[], [("2 events are intact", True)]])
def test_a_check_that_fails_is_not_whole(auditor, monkeypatch, before):
    def fail(_):
        yield from before
        raise KeyError("salt")

    monkeypatch.setattr(background_check, "verdicts", fail)

    auditor.post(PAGE)
    until(lambda: background_check.current().ended, what="the check to end")

    assert "The verification could not be completed: internal error: KeyError: &#39;salt&#39;." in words(auditor)
    assert not background_check.current().is_ok


@pytest.mark.skipif(not IS_POSTGRESQL, reason="SQLite has no connection that breaks")
def test_a_check_that_loses_its_connection_says_so(auditor, monkeypatch):
    def lose_connection(_):
        with connection.cursor() as cursor:
            yield cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    monkeypatch.setattr(background_check, "verdicts", lose_connection)

    auditor.post(PAGE)
    until(lambda: background_check.current().ended, what="the check to end")

    assert "The verification could not be completed: terminating connection" in words(auditor)


@pytest.mark.parametrize("is_ahead", [False, True])
def test_of_two_who_begin_one_the_second_is_told_and_a_lost_one_is_begun_again(auditor, monkeypatch, is_ahead):
    monkeypatch.setattr(background_check, "in_thread", lambda _: None)
    auditor.post(PAGE)

    late = auditor.post(PAGE)
    assert (late.status_code, "is already verifying the record" in late.content.decode()) == (409, True)
    assert "Verify the whole record" not in words(auditor)
    now = time.time()
    monkeypatch.setattr(
        background_check.time, "time", lambda: now + (background_check.LOST_AFTER_S + 60) * (-1 if is_ahead else 1)
    )
    assert "This check ended with its server" in words(auditor)
    assert auditor.post(PAGE).status_code == 302


def test_the_audit_page_starts_it_and_links_to_its_outcome(auditor, settings):
    checkpoints.make(Signer(settings.CONFIG.signing_key_path))
    page = auditor.get("/audit/").content.decode()
    assert f'<form class="row" method="post" action="{PAGE}"><input type="hidden" name="csrfmiddlewaretoken"' in page
    assert f'<a href="{PAGE}">' not in page

    auditor.post(PAGE)
    until(lambda: background_check.current().ended, what="the check to end")

    assert f'<a href="{PAGE}">' in auditor.get("/audit/").content.decode()


def test_it_tells_how_far_it_is(auditor, monkeypatch):
    monkeypatch.setattr(background_check, "in_thread", lambda _: None)
    monkeypatch.setattr(background_check, "TOLD_EVERY_S", -1)
    auditor.post(PAGE)

    background_check._ProgressNote(background_check.current()).count("events", 1200)

    assert "1,200 events checked; no errors so far." in words(auditor)
