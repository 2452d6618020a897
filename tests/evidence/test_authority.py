"""Rows that authority rests on are compared with the audit log beside people who change them."""

import pytest

from conversations.access.accounts import people
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import in_write_transaction
from conversations.events import log
from conversations.evidence import authority
from conversations.models import AuditEntry, Role
from conversations.redaction import erase_id, legal_holds

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


def before_the_second_look(monkeypatch, act):
    """Have an action happen once, before actions wait for the second look."""
    lock, acts = authority.lock_actions, iter([act])

    def late():
        lock()
        for once in acts:
            once()

    monkeypatch.setattr(authority, "lock_actions", late)


def test_the_audit_log_is_read_before_actions_wait(monkeypatch):
    Role.objects.create(user=people.create_person(SYSTEM, "ida", ["viewer"]), name="admin")
    before_the_second_look(monkeypatch, lambda: people.create_person(SYSTEM, "otto", ["viewer"]))
    read_meanwhile, take = [], authority.Authority.take

    def watched(expected: authority.Authority, entry: AuditEntry) -> None:
        if in_write_transaction():
            read_meanwhile.append(entry.target)
        take(expected, entry)

    monkeypatch.setattr(authority.Authority, "take", watched)

    assert authority.first_fault() == "person 'ida' has the roles admin, viewer; the audit log gave viewer"
    assert read_meanwhile == ["user:otto"]


def test_what_an_action_explains_meanwhile_is_no_fault(monkeypatch):
    Role.objects.create(user=people.create_person(SYSTEM, "ida", ["viewer"]), name="admin")
    before_the_second_look(monkeypatch, lambda: people.set_roles(SYSTEM, "ida", ["admin"]))

    assert authority.first_fault() == ""


def test_an_id_that_is_erased_meanwhile_makes_no_fault(monkeypatch):
    log.append([log.from_internal("alice", {"event": "log", "text": "hello"}, SYSTEM)])
    legal_holds.release(SYSTEM, legal_holds.place(SYSTEM, "alice", "a lawsuit").pk, "over")
    compare, looks = authority._holds, iter([["a fault that is none"]])
    monkeypatch.setattr(authority, "_holds", lambda expected: iter(next(looks, None) or compare(expected)))
    before_the_second_look(monkeypatch, lambda: erase_id.erase_id(SYSTEM, "alice", "asked for"))

    assert authority.first_fault() == ""
