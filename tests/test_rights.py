"""Who may do what: the table of design 3.7, every cell."""

import pytest

from conversations import principals, rights
from conversations.actions import tokens
from conversations.errors import NotAllowed
from conversations.log.writing import writing
from conversations.models import Role, Token
from tests.cast import STRANGER, person

pytestmark = pytest.mark.django_db


# The table as the design prints it, so that a slip in `rights` is seen: verb → viewer operator approver auditor admin.
PRINTED = {
    "view": "✓✓✓✓✓",
    "publish": "    ✓",
    "send": " ✓  ✓",
    "respond": " ✓  ✓",
    "control": " ✓  ✓",
    "replay": " ✓  ✓",
    "speak": "    ✓",
    "replay_unsafe": "    ✓",
    "decide": "  ✓ ✓",
    "audit": "   ✓✓",
    "export": "   ✓✓",
    "save_views": "✓✓✓✓✓",
    "reveal": "   ✓✓",
    "people": "    ✓",
    "tokens": "    ✓",
    "policies": "    ✓",
    "quarantine": "    ✓",
    "metrics": "    ✓",
}
ROLES = ("viewer", "operator", "approver", "auditor", "admin")
CELLS = [(verb, role, row[at] == "✓") for verb, row in PRINTED.items() for at, role in enumerate(ROLES)]


def test_every_verb_is_in_the_printed_table():
    assert set(rights.VERBS) == set(PRINTED)


@pytest.mark.parametrize(("verb", "role", "allowed"), CELLS)
def test_a_person_may_what_the_table_says(verb, role, allowed):
    somebody = person("somebody", role)

    assert rights.may(somebody, verb) is allowed
    assert rights.may(principals.of_user("somebody"), verb) is allowed


@pytest.mark.parametrize(("verb", "role", "allowed"), CELLS)
def test_a_token_may_what_its_role_may(verb, role, allowed):
    assert rights.may(Token(name="t", role=role), verb) is allowed
    assert rights.may(frozenset({role}), verb) is allowed


def test_a_stranger_may_nothing(people):
    for who in (STRANGER, people[""], principals.of_import("file"), principals.of_user("nobody"), Token(role="agent")):
        assert [verb for verb in rights.VERBS if rights.may(who, verb)] == []


def test_several_roles_add_up():
    both = person("both", "operator", "approver")

    allowed = {verb for verb in rights.VERBS if rights.may(both, verb)}

    assert allowed == {verb for verb, row in PRINTED.items() if "✓" in row[1:3]}


def test_a_deactivated_person_may_nothing(people):
    people["admin"].is_active = False
    people["admin"].save()

    assert not rights.may(people["admin"], "view")
    with writing():
        assert not rights.may(people["admin"], "view")


def test_roles_are_read_afresh_inside_a_transaction(people):
    admin = people["admin"]
    assert rights.may(admin, "people")

    Role.objects.filter(user=admin).delete()

    with writing(), pytest.raises(NotAllowed, match="user:ada may not manage people: that takes the role admin"):
        rights.require(admin, "people")


def test_a_revoked_token_may_nothing():
    words = tokens.make_token(principals.SYSTEM, "ci", "viewer")
    token = tokens.token_of(words)
    assert rights.may(token, "view")

    tokens.revoke_token(principals.SYSTEM, "ci")

    with writing():
        assert not rights.may(token, "view")
    assert not rights.may(principals.of_token("ci"), "view")


def test_an_agents_token_stays_with_its_agent():
    words = tokens.make_token(principals.SYSTEM, "robot", "agent", agent="Dialogue")

    for who in (tokens.token_of(words), principals.of_token("robot")):
        assert rights.may(who, "publish", "agent:Dialogue")
        assert rights.may(who, "view", "topic:chat:Dialogue")
        assert not rights.may(who, "publish", "agent:Triage")
        assert not rights.may(who, "view", "topic:chat:Triage")
        assert not rights.may(who, "publish")
        assert not rights.may(who, "send", "agent:Dialogue")
