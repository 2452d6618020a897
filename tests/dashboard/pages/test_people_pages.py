"""The admin's page of people."""

import re

import pytest

from conversations.access import permissions
from conversations.access.accounts import people
from conversations.core.principals import SYSTEM
from conversations.models import AuditEntry, User
from conversations.models.people import ROLES
from tests.support.cast import client_of
from tests.support.visits import BY_HAND, who, words

pytestmark = pytest.mark.django_db


def test_the_admin_sees_everybody(admin):
    text = words(admin.get("/people/"))

    assert all(f'id="{name}"' in text for name in ("vera", "otto", "april", "audrey", "ada", "nora"))


def test_who_adds_a_person_reads_what_each_role_may_do(admin):
    text = words(admin.get("/people/"))

    assert "reads, and decides approvals" in text
    assert set(permissions.PURPOSES) == set(ROLES)


@pytest.mark.parametrize("role", ["viewer", "operator", "approver", "auditor", ""])
@pytest.mark.parametrize(
    "path", ["/people/", "/people/ada/roles/", "/people/ada/link/", "/people/ada/activity/", "/people/ada/sign-outs/"]
)
def test_others_change_nobody_and_are_recorded(team, role, path):
    client = client_of(team[role])
    before = list(User.objects.order_by("pk").values())

    response = client.post(path, {"name": "new", "role": "admin"})

    assert response.status_code == 403
    assert list(User.objects.order_by("pk").values()) == before
    assert AuditEntry.objects.filter(outcome="refused").count() == AuditEntry.objects.count() == 1


def test_adding_a_person_shows_a_link_once(admin):
    response = admin.post("/people/", {"name": "maria", "role": ["viewer", "operator"]})

    link = re.search(r'value="http://127.0.0.1:8000(/sign-in/link/\?t=[^"]+)"', words(response)).group(1)
    assert User.objects.get(username="maria").role_names == {"viewer", "operator"}
    assert link not in words(admin.get("/people/"))
    newcomer = client_of()
    newcomer.get(link, headers=BY_HAND)
    assert who(newcomer) == "maria"


def test_a_taken_name_keeps_what_was_entered(admin):
    response = admin.post("/people/", {"name": "vera", "role": "operator"})

    assert response.status_code == 409
    assert "The name vera is taken" in words(response)
    assert 'value="vera"' in words(response)


def test_roles_are_saved(admin):
    response = admin.post("/people/vera/roles/", {"expected": "viewer", "role": ["approver", "auditor"]})

    assert response["Location"] == "/people/?done=roles&name=vera#vera"
    assert User.objects.get(username="vera").role_names == {"approver", "auditor"}


def test_roles_changed_meanwhile_are_not_overwritten(admin):
    people.set_roles(SYSTEM, "vera", ["operator"])

    response = admin.post("/people/vera/roles/", {"expected": "viewer", "role": ["approver"]})

    assert response.status_code == 409
    assert "The roles of vera are now operator (changed by system)" in words(response)


def test_deactivating_ends_sessions_and_activating_undoes_it(team, admin):
    vera = client_of(team["viewer"])

    admin.post("/people/vera/activity/", {"active": "no"})
    assert who(vera) is None
    assert "deactivated" in words(admin.get("/people/"))

    admin.post("/people/vera/activity/", {"active": "yes"})
    assert User.objects.get(username="vera").is_active


def test_the_last_admin_cannot_leave(admin):
    response = admin.post("/people/ada/activity/", {"active": "no"})

    assert response.status_code == 409
    assert "last active admin" in words(response)


def test_the_admin_signs_somebody_out(team, admin):
    vera = client_of(team["viewer"])

    admin.post("/people/vera/sign-outs/")

    assert who(vera) is None


def test_nobody_is_404(admin):
    assert admin.post("/people/nobody/link/").status_code == 404


@pytest.mark.parametrize(
    ("act", "fields", "words"),
    [
        ("sign-outs", {}, "Signed out everywhere."),
        ("roles", {"role": ["viewer", "auditor"], "expected": "viewer"}, "Roles saved."),
        ("activity", {"active": "no"}, "Deactivated, and signed out everywhere."),
    ],
)
def test_what_was_done_is_confirmed_in_the_persons_row(team, admin, act, fields, words):
    answer = admin.post(f"/people/vera/{act}/", fields)

    assert answer.url.endswith("#vera")
    page = admin.get(answer.url).content.decode()
    assert page.count(f'role="status">{words}</span>') == 1
    assert words in page.partition('id="vera"')[2].partition("</tr>")[0]
    assert words not in admin.get("/people/").content.decode()
