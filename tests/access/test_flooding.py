"""Low rights, small effect: nobody is kept out, no log and no list is filled by what one of many may do."""

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from axes.models import AccessAttempt
from django.db import OperationalError
from django.test import RequestFactory

from conversations.access.accounts import sign_in as sessions
from conversations.access.accounts import tokens
from conversations.access.audit import chain, refusal_counter
from conversations.conversation import control
from conversations.core import log_format, principals
from conversations.core.db_threads import POOL_SIZE
from conversations.core.errors import Invalid, NotAllowed
from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry, User
from conversations.tool_calls import saved_views
from dashboard import sign_in_throttle
from dashboard.pages import sign_in
from tests.support.cast import PASSWORD, client_of, person
from tests.support.live import until
from tests.support.visits import try_in

pytestmark = pytest.mark.django_db(transaction=True)


def test_whoever_floods_the_sign_in_keeps_nobody_elsewhere_out():
    line, go, held = sign_in_throttle.PasswordCheckQueue(), threading.Event(), []

    def wrong(n: int) -> None:
        with line.place("10.6.6.6", f"name-{n}") as has_place:
            held.append(has_place)
            go.wait(60)

    with ThreadPoolExecutor(12) as threads:
        tries = [threads.submit(wrong, n) for n in range(12)]
        until(
            lambda: len(held) == 12 - sign_in_throttle.FROM_AN_ADDRESS + sign_in_throttle.AT_ONCE,
            what="the line to be full",
        )
        with ThreadPoolExecutor(1) as elsewhere:
            right = elsewhere.submit(lambda: next(iter(_placed(line, "10.0.0.1", "maria"))))
            until(lambda: ("10.0.0.1", "maria") in line._names, what="maria to stand in line")
            go.set()
            assert right.result(60) is True
        for attempt in tries:
            attempt.result(60)
    assert held.count(False) == 12 - sign_in_throttle.FROM_AN_ADDRESS
    assert line._names == set()


def _placed(line, address, name):
    with line.place(address, name) as has_place:
        yield has_place


def test_a_flood_of_sign_ins_leaves_three_threads_to_the_pages():
    assert POOL_SIZE["pages"] - sign_in_throttle.IN_LINE >= 3
    assert sign_in_throttle.AT_ONCE < sign_in_throttle.FROM_AN_ADDRESS < sign_in_throttle.IN_LINE


def test_of_one_name_from_one_address_one_try_is_checked_at_a_time():
    line = sign_in_throttle.PasswordCheckQueue()

    here, elsewhere = ("10.0.0.1", "maria"), ("10.0.0.2", "maria")
    with line.place(*here) as first, line.place(*here) as second, line.place(*elsewhere) as other:
        assert (first, second, other) == (True, False, True)


@pytest.mark.slow
@pytest.mark.any_database
def test_six_who_try_wrong_passwords_do_not_keep_a_person_out():
    User.objects.create(username="maria", password=PASSWORD)
    stop, statuses = threading.Event(), list[int]()

    def attack(n: int) -> None:
        tried = 0
        while not stop.is_set():
            tried += 1
            client = client_of()
            client.defaults["REMOTE_ADDR"] = "10.6.6.6"
            client.post("/sign-in/", {"username": f"u{n}-{tried}", "password": "wrong"})

    with ThreadPoolExecutor(6) as threads:
        attackers = [threads.submit(attack, n) for n in range(6)]
        until(lambda: AccessAttempt.objects.count() > 3, what="the attack to begin")
        for _ in range(4):
            client = client_of()
            client.defaults["REMOTE_ADDR"] = "10.0.0.1"
            statuses.append(client.post("/sign-in/", {"username": "maria", "password": PASSWORD}).status_code)
        stop.set()
        for address in attackers:
            address.result(60)

    assert statuses == [302] * 4


def test_a_name_that_is_nobodys_is_kept_as_a_digest():
    person("vera", "viewer")
    for name in ("hunter2-my-password", "vera"):
        try_in(client_of(), "wrong", name)

    usernames = set(AccessAttempt.objects.values_list("username", flat=True))
    assert {name for name in usernames if not name.startswith("?")} == {"vera"}
    assert not any("hunter2" in json.dumps(row, default=str) for row in AccessAttempt.objects.values())
    for _ in range(4):
        answer = try_in(client_of(), "wrong", "hunter2-my-password")
    assert answer.status_code == 429


@pytest.mark.parametrize("password", [" " * 10, "a" * 12, "ab ab ab ab ab", "12 12 12 12 12 12"])
def test_a_password_of_few_characters_is_refused(password):
    with pytest.raises(Invalid, match="at least 5 different characters, not counting spaces"):
        sessions.fit_password(person("vera"), password)


def test_a_programs_repeated_refusals_are_counted_in_one_entry():
    tokens.make_token(SYSTEM, "looker", "viewer")
    before = AuditEntry.objects.count()

    for _ in range(50):
        with pytest.raises(NotAllowed):
            control.pause(principals.token_principal("looker"), "c")
    for n in range(50):
        with pytest.raises(NotAllowed):
            control.pause(principals.token_principal("looker"), f"c{n}")

    assert AuditEntry.objects.count() - before == refusal_counter.SINGLY
    refusal_counter.flush(everything=True)
    refusals = AuditEntry.objects.filter(principal="token:looker")
    correlations = [json.loads(entry.correlation or "{}") for entry in refusals]
    assert sum(entry.get("times", 1) for entry in correlations) == 100
    assert chain.verify().ok


def test_a_persons_refusals_are_told_one_by_one():
    vera = person("vera", "viewer")

    for _ in range(3):
        with pytest.raises(NotAllowed):
            control.pause(vera, "c")

    assert AuditEntry.objects.filter(principal="user:vera", outcome="refused").count() == 3


def test_nobody_fills_the_saved_views_of_all():
    vera, otto = person("vera", "viewer"), person("otto", "operator")
    for n in range(saved_views.MAX_EACH):
        saved_views.save_view(vera, f"view {n}", "")

    with pytest.raises(Invalid, match="you already have 25 views"):
        saved_views.save_view(vera, "one more", "")
    assert saved_views.save_view(otto, "mine", "").pk


def test_a_foreign_host_is_a_quiet_warning(caplog):
    with caplog.at_level(logging.WARNING):
        assert client_of().get("/", headers={"Host": "evil.example"}).status_code == 400

    (record,) = [r for r in caplog.records if r.name == "django.security.DisallowedHost"]
    assert (record.levelname, record.exc_info, record.exc_text) == ("WARNING", None, None)
    assert "Traceback" not in log_format.TextFormatter().format(record)


def test_the_sign_in_page_uses_the_line():
    request = RequestFactory().post("/sign-in/", {"username": "maria"})

    with sign_in._line.place(request.META["REMOTE_ADDR"], "maria"):
        assert try_in(client_of()).status_code == 429


def test_refusals_that_cannot_be_written_are_counted_until_they_can(monkeypatch):
    def full(*_, **__):
        raise OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(chain, "add_entry", full)
        for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2"):
            with suppress(OperationalError):
                refusal_counter.record_refusal(address, "view", "pages", reason="no such token")
        with pytest.raises(OperationalError):
            refusal_counter.flush(everything=True)

    refusal_counter.flush(everything=True)

    refused = AuditEntry.objects.filter(outcome="refused").order_by("seq")
    assert [json.loads(entry.correlation) for entry in refused] == [
        {"address": "10.0.0.1", "times": 2},
        {"address": "10.0.0.2", "times": 1},
    ]
