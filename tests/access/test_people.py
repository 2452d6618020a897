"""People and roles: each action works, refuses strangers, tells losers, is audited."""

import json
import threading

import pytest
from django.contrib.sessions.models import Session
from django.db import connection

from conversations.access.accounts import people, sign_in, sign_in_links
from conversations.access.audit import chain
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import in_write_transaction
from conversations.events import commit_listeners
from conversations.models import User
from tests.support.cast import audit_summary, cast, client_of, last_entry

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(team):
    return team["admin"]


def test_a_person_is_made_with_roles(admin):
    person = people.create_person(admin, " maria ", ["operator", "approver"])

    assert (person.username, person.role_names) == ("maria", {"operator", "approver"})
    assert not person.has_usable_password()
    assert audit_summary(last_entry()) == ("user:ada", "create_person", "user:maria", "done")
    assert json.loads(last_entry().correlation)["roles"] == ["approver", "operator"]


@pytest.mark.each_form  # texts that a column cannot hold
@pytest.mark.parametrize("name", ["", "a b", "../x", "..", "-x", "a\0b", "x" * 151, "a:b"])
def test_an_unfit_name_is_refused(admin, name):
    with pytest.raises(Invalid) as caught:
        people.create_person(admin, name, [])

    assert caught.value.field == "name"


@pytest.mark.parametrize(("name", "taken"), [("émile", "Émile"), ("ΠΕΤΡΟΣ", "Πετρος"), ("Strasse", "Straße")])
def test_a_name_is_taken_in_any_case_of_any_script(admin, name, taken):
    people.create_person(admin, taken, ["viewer"])

    with pytest.raises(Conflict, match=f"{name} is taken"):
        people.create_person(admin, name, ["viewer"])


def test_people_whose_names_differ_in_case_from_before_may_both_be_changed(admin):
    for name in ("Émile", "émile"):
        User.objects.create(username=name)

        people.set_roles(admin, name, ["operator"])
        people.deactivate(admin, name)

    assert User.objects.filter(roles__name="operator", is_active=False).count() == 2


def test_a_taken_name_is_refused_in_any_case(admin):
    with pytest.raises(Conflict, match="Vera is taken"):
        people.create_person(admin, "Vera", [])


def test_an_unknown_role_is_refused(admin):
    with pytest.raises(Invalid, match="unknown role root"):
        people.create_person(admin, "maria", ["root"])


def test_a_weak_password_is_refused(admin):
    with pytest.raises(Invalid, match="too short"):
        people.create_person(admin, "maria", [], password="short")


def test_roles_are_set_exactly_and_told(admin):
    people.set_roles(admin, "vera", ["operator", "auditor"])

    assert User.objects.get(username="vera").role_names == {"operator", "auditor"}
    facts = json.loads(last_entry().correlation)
    assert (facts["roles_before"], facts["roles"]) == (["viewer"], ["auditor", "operator"])
    assert last_entry().before == chain.digest(["viewer"])


def test_a_change_of_roles_rings_after_the_commit(admin, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks() as callbacks:
        people.set_roles(admin, "vera", [])

    assert callbacks == [commit_listeners.notify_audited, commit_listeners.notify_revoked]


def test_the_slower_admin_learns_who_was_first(team, admin):
    people.set_roles(admin, "ada", ["admin", "viewer"])
    people.set_roles(admin, "vera", ["operator"], expected=["viewer"])

    with pytest.raises(Conflict, match=r"the roles of vera are now operator \(changed by user:ada\)"):
        people.set_roles(SYSTEM, "vera", ["auditor"], expected=["viewer"])

    assert User.objects.get(username="vera").role_names == {"operator"}
    assert audit_summary(last_entry()) == ("system", "set_roles", "user:vera", "refused")


def test_a_form_that_showed_no_role_takes_none_away(team, admin):
    people.create_person(admin, "nova", [])
    people.set_roles(admin, "nova", ["operator"], expected=[])

    with pytest.raises(Conflict, match="the roles of nova are now operator"):
        people.set_roles(SYSTEM, "nova", ["auditor"], expected=[])

    assert User.objects.get(username="nova").role_names == {"operator"}


def test_the_last_active_admin_keeps_the_role(team, admin):
    people.create_person(admin, "asleep", ["admin"])
    people.deactivate(admin, "asleep")

    with pytest.raises(Conflict, match="last active admin"):
        people.set_roles(admin, "ada", ["viewer"])
    with pytest.raises(Conflict, match="last active admin"):
        people.deactivate(admin, "ada")

    assert User.objects.get(username="ada").role_names == {"admin"}


@pytest.mark.django_db(transaction=True)
def test_two_admins_cannot_demote_each_other_at_once():
    cast()
    people.create_person(SYSTEM, "adam", ["admin"])
    start, outcomes = threading.Barrier(2), []

    def demote(name):
        start.wait()
        try:
            people.set_roles(SYSTEM, name, ["viewer"])
            outcomes.append("done")
        except Conflict:
            outcomes.append("refused")
        connection.close()

    threads = [threading.Thread(target=demote, args=[name]) for name in ("ada", "adam")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert sorted(outcomes) == ["done", "refused"]
    assert User.objects.filter(roles__name="admin").count() == 1


def test_deactivation_shuts_out_and_can_be_undone(team, admin):
    link = sign_in_links.make_link(admin, "vera")
    salt = team["viewer"].session_salt

    people.deactivate(admin, "vera")

    vera = User.objects.get(username="vera")
    assert not vera.is_active
    assert vera.session_salt != salt
    with pytest.raises(NotFound):
        sign_in_links.use_link(link, address="10.0.0.1")
    people.activate(admin, "vera")
    assert User.objects.get(username="vera").is_active


@pytest.mark.parametrize("act", [people.deactivate, people.activate, sign_in_links.make_link])
def test_nobody_is_told_so(admin, act):
    with pytest.raises(NotFound, match="there is no person nobody"):
        act(admin, "nobody")


@pytest.mark.parametrize(
    "act",
    [
        lambda by: people.deactivate(by, "otto"),
        lambda by: sign_in.sign_out_everywhere(by, "otto"),
        lambda by: sign_in.set_password(by, "otto", "a quite long passphrase"),
    ],
    ids=["deactivate", "sign_out_everywhere", "set_password"],
)
def test_sessions_are_opened_before_the_transaction_and_end_in_it(team, admin, act, monkeypatch):
    opened = []
    client_of(team["operator"]), client_of(team["viewer"])
    decode = Session.get_decoded
    monkeypatch.setattr(Session, "get_decoded", lambda row: opened.append(in_write_transaction()) or decode(row))

    act(admin)

    assert opened == [False, False]
    assert len(list(sign_in.devices_of(team["operator"]))) == 0
    assert len(list(sign_in.devices_of(team["viewer"]))) == 1
