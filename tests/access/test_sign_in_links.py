"""Links, passwords and sign-outs: each works once, refuses, is audited."""

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from conversations.access.accounts import one_time_secret, people, sign_in, sign_in_links
from conversations.core.errors import Conflict, NotFound
from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry, SignInLink, User
from conversations.models.people import ROLES
from tests.support.cast import PASSWORD, audit_summary, cast, last_entry

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(team):
    return team["admin"]


def test_a_link_signs_in_once(team, admin):
    link = sign_in_links.make_link(admin, "vera")

    assert sign_in_links.use_link(link, address="10.0.0.1") == team["viewer"]
    assert audit_summary(last_entry()) == ("user:vera", "use_link", "user:vera", "done")
    with pytest.raises(Conflict, match="was already used") as caught:
        sign_in_links.use_link(link, address="10.0.0.1")
    assert caught.value.code == "link_used"
    assert audit_summary(last_entry()) == ("system", "use_link", "user:vera", "refused")


def test_a_link_is_stored_as_its_digest(admin):
    link = sign_in_links.make_link(admin, "vera")

    assert SignInLink.objects.get().digest == one_time_secret.digest(link)
    assert link not in str(list(AuditEntry.objects.values()))


def test_an_old_link_is_refused(admin):
    link = sign_in_links.make_link(admin, "vera")
    SignInLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    with pytest.raises(Conflict, match="has expired") as caught:
        sign_in_links.use_link(link, address="10.0.0.1")

    assert caught.value.code == "link_expired"


def test_an_unknown_link_is_refused_and_counted():
    with pytest.raises(NotFound, match="This link is not valid"):
        sign_in_links.use_link("made up", address="10.0.0.1")

    assert audit_summary(last_entry()) == ("system", "use_link", "user:?", "refused")


@pytest.mark.django_db(transaction=True)
def test_of_many_who_use_a_link_at_once_one_gets_in():
    cast()
    link = sign_in_links.make_link(SYSTEM, "vera")
    start, outcomes = threading.Barrier(8), []

    def use():
        start.wait()
        try:
            outcomes.append(sign_in_links.use_link(link, address="10.0.0.1").username)
        except Conflict as error:
            outcomes.append(error.code)
        connection.close()

    threads = [threading.Thread(target=use) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert sorted(outcomes) == ["link_used"] * 7 + ["vera"]


def test_no_link_for_a_deactivated_person(admin):
    people.deactivate(admin, "vera")

    with pytest.raises(Conflict, match="deactivated"):
        sign_in_links.make_link(admin, "vera")


def test_ones_own_password_is_set(team):
    sign_in.set_password(team["viewer"], "vera", PASSWORD)

    assert User.objects.get(username="vera").check_password(PASSWORD)
    assert audit_summary(last_entry()) == ("user:vera", "set_password", "user:vera", "done")


def test_sign_out_everywhere_changes_the_salt_and_voids_links(team, admin):
    link = sign_in_links.make_link(admin, "vera")
    before = User.objects.get(username="vera").get_session_auth_hash()

    sign_in.sign_out_everywhere(team["viewer"], "vera")

    assert User.objects.get(username="vera").get_session_auth_hash() != before
    with pytest.raises(NotFound):
        sign_in_links.use_link(link, address="10.0.0.1")


def test_a_failed_sign_in_keeps_no_unknown_name(team):
    sign_in.note_failed_sign_in("vera", "10.0.0.1", is_locked_out=False)
    sign_in.note_failed_sign_in("my password", "10.0.0.1", is_locked_out=True)

    targets = list(AuditEntry.objects.order_by("seq").values_list("verb", "target"))
    assert targets == [("sign_in", "user:vera"), ("lock_out", "user:?")]


def test_the_first_owner_gets_every_role_and_a_new_link_each_start():
    first = people.first_owner()
    second = people.first_owner()

    owner = User.objects.get()
    assert (owner.username, owner.role_names) == ("owner", set(ROLES))
    assert first != second
    assert sign_in_links.use_link(second, address="10.0.0.1") == owner


def test_no_owners_link_once_somebody_signed_in(team):
    User.objects.filter(username="vera").update(last_login=timezone.now())

    assert people.first_owner() is None
