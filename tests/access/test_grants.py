"""Grants: given and taken by an admin, counted as the database has them, refused to others, audited."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.access import grants
from conversations.access.accounts import people, tokens
from conversations.access.accounts.edit_grants import give_grant, take_grant
from conversations.core import principals
from conversations.core.errors import Conflict, Invalid, NotAllowed, NotFound
from conversations.core.principals import SYSTEM
from conversations.core.write_transaction import write_transaction
from conversations.models import Grant
from tests.support.cast import audit_summary, client_of, last_entry
from tests.support.visits import words

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin(team):
    return team["admin"]


def test_a_given_grant_counts_and_is_audited(admin, otto):
    with pytest.raises(NotAllowed, match=r"may not speak as agent:Dev.*an admin can grant it on the People page"):
        grants.require(otto, "speak_as", "agent:Dev")

    give_grant(admin, "otto", "speak_as", " Dev ", reason="covers for the desk")

    grants.require(otto, "speak_as", "agent:Dev")
    grants.require(principals.user_principal("otto"), "speak_as", "agent:Dev")
    assert grants.granted_targets(otto, "speak_as") == {"agent:Dev"}
    assert grants.granted_targets(otto, "replay") == frozenset()
    entry = last_entry()
    assert audit_summary(entry) == ("user:ada", "give_grant", "user:otto", "done")
    assert entry.reason == "covers for the desk"
    assert json.loads(entry.correlation) == {"target": "agent:Dev", "until": "", "what": "speak_as"}


def test_one_for_all_counts_for_each_and_one_for_another_does_not(admin, otto):
    give_grant(admin, "otto", "replay", "refunds.file")
    with pytest.raises(NotAllowed, match=r"may not replay calls of refunds\.find"):
        grants.require(otto, "replay", "refunds.find")

    give_grant(admin, "otto", "replay", "*")

    grants.require(otto, "replay", "refunds.find")
    with pytest.raises(Conflict, match="this grant already exists: otto may replay calls of all, granted by"):
        give_grant(admin, "otto", "replay", "*")


def test_an_agent_called_system_is_not_the_system(admin, otto):
    give_grant(admin, "otto", "speak_as", "agent:system")

    with pytest.raises(NotAllowed, match="speak as system"):
        grants.require(otto, "speak_as", "system")


def test_a_taken_grant_counts_no_more_inside_a_transaction_that_goes_on(admin, otto):
    give_grant(admin, "otto", "speak_as", "*")
    with write_transaction():
        grants.require(otto, "speak_as", "system")
        take_grant(admin, "otto", "speak_as", "*", reason="is back")

        with pytest.raises(NotAllowed):
            grants.require(otto, "speak_as", "system")

    assert audit_summary(last_entry()) == ("user:ada", "take_grant", "user:otto", "done")


def test_a_grant_ends_with_its_time_and_can_be_given_anew(admin, otto):
    give_grant(admin, "otto", "speak_as", "system", until=timezone.now() + timedelta(hours=1))
    grants.require(otto, "speak_as", "system")
    Grant.objects.update(until=timezone.now())

    with pytest.raises(NotAllowed):
        grants.require(otto, "speak_as", "system")

    give_grant(admin, "otto", "speak_as", "system")
    grants.require(otto, "speak_as", "system")


@pytest.mark.parametrize("role", ["viewer", "approver", "auditor", ""])
def test_a_grant_counts_only_with_the_role_of_the_plain_verb(team, role):
    somebody = team[role]
    give_grant(SYSTEM, somebody.username, "speak_as", "*")

    assert grants.granted_targets(somebody, "speak_as") == frozenset()
    with pytest.raises(NotAllowed, match="requires the role admin or operator"):
        grants.require(somebody, "speak_as", "system")


def test_who_was_shut_out_holds_none(admin, otto):
    give_grant(admin, "otto", "speak_as", "*")
    people.deactivate(admin, "otto")

    with write_transaction():
        assert grants.granted_targets(otto, "speak_as") == frozenset()


def test_a_token_holds_none_though_its_name_is_a_persons(admin):
    give_grant(admin, "otto", "speak_as", "*")
    token = tokens.token_of(tokens.make_token(admin, "otto", "operator"))

    with pytest.raises(NotAllowed, match=r"token:otto.*only people can have one"):
        grants.require(token, "speak_as", "system")


def test_admins_and_commands_need_none(admin):
    grants.require(admin, "speak_as", "system")
    grants.require(SYSTEM, "replay", "refunds.file")


@pytest.mark.each_form  # texts that a column cannot hold
@pytest.mark.parametrize(
    ("what", "target", "field"),
    [
        ("rule", "*", "what"),
        ("speak_as", " ", "target"),
        ("speak_as", "agent: ", "target"),
        ("speak_as", "a\0b", "target"),
        ("speak_as", "x" * 201, "target"),
        ("replay", "x" * 402, "target"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_field(admin, what, target, field):
    with pytest.raises(Invalid) as caught:
        give_grant(admin, "otto", what, target)

    assert caught.value.field == field


def test_a_time_that_is_over_and_nobody_are_refused(admin):
    with pytest.raises(Invalid, match="must be in the future"):
        give_grant(admin, "otto", "speak_as", "*", until=timezone.now())
    with pytest.raises(NotFound, match="there is no person nobody"):
        give_grant(admin, "nobody", "speak_as", "*")


# The People page.


def test_the_people_page_gives_lists_and_takes(admin, otto):
    browser = client_of(admin)
    form = {"person": "otto", "what": "speak_as", "target": "agent:Dev \u202eA", "until": "2099-01-31T10:00"}

    assert browser.post("/people/grants/", form)["Location"] == "/people/#grants"

    page = words(browser.get("/people/"))
    assert "speak as <b><bdi>agent:Dev [U+202E]A</bdi></b>" in page
    assert "2099-01-31 10:00" in page
    assert Grant.objects.get().until.isoformat() == "2099-01-31T10:00:00+00:00"
    assert browser.post("/people/grants/removals/", form).status_code == 302
    assert not Grant.objects.exists()


def test_the_people_page_tells_what_is_wrong_and_keeps_what_was_entered(admin):
    browser = client_of(admin)
    form = {"person": "otto", "what": "replay", "target": "refunds.file", "until": "never", "reason": "night shift"}

    answer = browser.post("/people/grants/", form)

    assert answer.status_code == 400
    assert "must be a date and time" in words(answer)
    assert 'value="refunds.file"' in words(answer)
    assert 'value="night shift"' in words(answer)
    assert browser.post("/people/grants/removals/", form).status_code == 409
