"""An auto-approval rule counts only while whoever made it may decide; a token is one secret, not its name."""

import pytest

from conversations.access.accounts import tokens
from conversations.core.principals import SYSTEM
from conversations.models import Token
from conversations.runs.approvals import auto_approval, auto_approval_edit
from conversations.runs.approvals.auto_approval_edit import AutoApprovalScope
from tests.support import teamwork

pytestmark = pytest.mark.django_db(transaction=True)


def make_rule():
    scope = AutoApprovalScope(is_exact=False, arguments={}, any_agent=True, tool="file_incident")
    return auto_approval_edit.make_rule(Token.objects.get(name="bot"), scope)


def test_a_rule_of_a_revoked_token_stays_dead_when_its_name_is_used_again():
    teamwork.team()
    tokens.make_token(SYSTEM, "bot", "approver")
    rule = make_rule()
    assert auto_approval.makers_right(rule)

    tokens.revoke_token(SYSTEM, "bot")
    assert not auto_approval.makers_right(rule)
    tokens.make_token(SYSTEM, "bot", "admin")

    assert not auto_approval.makers_right(rule)
    assert auto_approval.makers_right(make_rule())
