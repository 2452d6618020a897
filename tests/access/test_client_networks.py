"""Who has a whole IPv6 network has one client's share of the sign-ins and of the refusals that are audited."""

import json

import pytest
from django.test import Client

from conversations.access.audit import refusal_counter
from conversations.models import AuditEntry
from dashboard import sign_in_throttle
from tests.support.cast import person

pytestmark = pytest.mark.django_db(transaction=True)
HERE = [f"2001:db8::{n}" for n in range(1, 8)]
ELSEWHERE = "2001:db8:0:1::1"


def test_one_try_of_a_name_is_checked_at_a_time():
    line = sign_in_throttle.PasswordCheckQueue()

    with (
        line.place(HERE[0], "maria") as first,
        line.place(HERE[1], "maria") as second,
        line.place(ELSEWHERE, "maria") as other,
    ):
        assert (first, second, other) == (True, False, True)


def test_five_wrong_tries_lock_the_name_for_all_its_addresses():
    person("vera", "viewer")

    def wrong(address: str) -> int:
        client = Client(headers={"Host": "127.0.0.1:8000"}, REMOTE_ADDR=address)
        return client.post("/sign-in/", {"username": "vera", "password": "wrong"}).status_code

    assert [wrong(address) for address in HERE[:5]] == [422] * 4 + [429]
    assert (wrong(HERE[5]), wrong(ELSEWHERE)) == (429, 422)
    assert sign_in_throttle.locked_until("vera", HERE[6]) is not None


def test_refusals_are_one_entry_and_a_count():
    refusal_counter.flush(everything=True)
    AuditEntry.objects.all().delete()

    for address in HERE:
        refusal_counter.record_refusal(address, "publish", "door", reason="no token")
    refusal_counter.flush(everything=True)

    correlations = [json.loads(entry.correlation) for entry in AuditEntry.objects.order_by("seq")]
    assert correlations == [{"address": HERE[0], "times": 1}, {"address": "2001:db8::/64", "times": 6}]
