"""Rows that authority rests on are compared with the audit log beside people who change them."""

import pytest

from conversations.access.accounts import people
from conversations.core.principals import SYSTEM
from conversations.evidence import authority
from conversations.models import Role

pytestmark = pytest.mark.django_db(transaction=True)


def test_who_is_made_between_the_two_looks_is_no_fault(monkeypatch):
    compare, names = authority._people, iter(["ida"])

    def late(expected):
        for name in names:
            people.create_person(SYSTEM, name, ["admin"])
        return compare(expected)

    monkeypatch.setattr(authority, "_people", late)

    assert authority.first_fault() == ""


def test_a_fault_that_stays_is_named():
    Role.objects.create(user=people.create_person(SYSTEM, "ida", ["viewer"]), name="admin")

    assert authority.first_fault() == "person 'ida' has the roles admin, viewer; the audit log gave viewer"
