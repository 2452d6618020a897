"""Who may do what: the table of §3.7, every cell."""

import pytest

from conversations.access import authentication, permissions
from conversations.access.accounts import tokens
from conversations.core import principals
from conversations.core.errors import NotAllowed
from conversations.core.write_transaction import write_transaction
from conversations.models import Role, Token
from tests.support.cast import STRANGER, person
from tests.support.grids import for_each

pytestmark = pytest.mark.django_db


# The table as the design prints it, so that a slip in `rights` is seen: verb → viewer operator approver auditor admin.
PRINTED = {
    "view": "✓✓✓✓✓",
    "publish": "    ✓",
    "report": "    ✓",
    "annotate": " ✓✓✓✓",
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
    "alerts": "    ✓",
    "metrics": "    ✓",
    "redact": "    ✓",
    "hold": "    ✓",
}
ROLES = ("viewer", "operator", "approver", "auditor", "admin")
CELLS = [(verb, role, row[at] == "✓") for verb, row in PRINTED.items() for at, role in enumerate(ROLES)]


def test_every_verb_is_in_the_printed_table():
    assert set(permissions.VERBS) == set(PRINTED)


def test_a_person_may_what_the_table_says():
    def prove(verb, role, allowed):
        somebody = person("somebody", role)

        assert permissions.has_permission(somebody, verb) is allowed
        assert permissions.has_permission(principals.user_principal("somebody"), verb) is allowed

    for_each(CELLS, prove)


def test_a_token_may_what_its_role_may():
    def prove(verb, role, allowed):
        assert permissions.has_permission(Token(name="t", role=role), verb) is allowed
        assert permissions.has_permission(frozenset({role}), verb) is allowed

    for_each(CELLS, prove)


def test_a_telemetry_token_may_report_and_nothing_else():
    tokens.make_token(principals.SYSTEM, "collector", "telemetry")
    held = Token.objects.get()

    for who in (held, principals.token_principal("collector"), frozenset({"telemetry"})):
        assert [verb for verb in permissions.VERBS if permissions.has_permission(who, verb)] == ["report"]


def test_a_stranger_may_nothing(people):
    for who in (
        STRANGER,
        people[""],
        principals.import_principal("file"),
        principals.user_principal("nobody"),
        Token(role="agent"),
    ):
        assert [verb for verb in permissions.VERBS if permissions.has_permission(who, verb)] == []


def test_several_roles_add_up():
    both = person("both", "operator", "approver")

    allowed = {verb for verb in permissions.VERBS if permissions.has_permission(both, verb)}

    assert allowed == {verb for verb, row in PRINTED.items() if "✓" in row[1:3]}


def test_a_deactivated_person_may_nothing(people):
    people["admin"].is_active = False
    people["admin"].save()

    assert not permissions.has_permission(people["admin"], "view")
    with write_transaction():
        assert not permissions.has_permission(people["admin"], "view")


def test_roles_are_read_afresh_inside_a_transaction(people):
    admin = people["admin"]
    assert permissions.has_permission(admin, "people")

    Role.objects.filter(user=admin).delete()

    with (
        write_transaction(),
        pytest.raises(NotAllowed, match="user:ada may not manage people: this requires the role admin"),
    ):
        permissions.require(admin, "people")


def test_a_revoked_token_may_nothing():
    words = tokens.make_token(principals.SYSTEM, "ci", "viewer")
    token = tokens.token_of(words)
    assert permissions.has_permission(token, "view")

    tokens.revoke_token(principals.SYSTEM, "ci")

    with write_transaction():
        assert not permissions.has_permission(token, "view")
    assert not permissions.has_permission(principals.token_principal("ci"), "view")


def test_the_old_secret_of_a_rotated_token_may_nothing():
    old = authentication.caller_from_token(tokens.make_token(principals.SYSTEM, "ci", "admin"))
    row = Token.objects.get()

    tokens.revoke_token(principals.SYSTEM, "ci")
    new = authentication.caller_from_token(tokens.make_token(principals.SYSTEM, "ci", "admin"))

    with write_transaction():
        assert permissions.has_permission(new.principal, "publish")
        for who in (old.principal, row, permissions.principal_of(row)):
            assert not permissions.has_permission(who, "publish")


def test_an_agents_token_stays_with_its_agent():
    words = tokens.make_token(principals.SYSTEM, "robot", "agent", agent="Dialogue")

    for who in (tokens.token_of(words), principals.token_principal("robot")):
        assert permissions.has_permission(who, "publish", "agent:Dialogue")
        assert permissions.has_permission(who, "view", "topic:chat:Dialogue")
        assert not permissions.has_permission(who, "publish", "agent:Triage")
        assert not permissions.has_permission(who, "view", "topic:chat:Triage")
        assert not permissions.has_permission(who, "publish")
        assert not permissions.has_permission(who, "send", "agent:Dialogue")
