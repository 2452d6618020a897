"""Edits of who may do what and of what may be removed: roles, tokens, grants, policies, retention rules, holds."""

from conversations.models import (
    AutoApprovalRule,
    BudgetLimit,
    Conversation,
    Grant,
    LegalHold,
    Policy,
    RedactionRequest,
    RetentionRule,
    Role,
    Token,
    User,
)
from conversations.redaction.scope import RedactionScope


def a_role_given(at):
    Role.objects.create(user=User.objects.get(username="otto"), name="admin")
    return "person 'otto'"


def a_person_made(at):
    Role.objects.create(user=User.objects.create(username="mallory"), name="admin")
    return "person 'mallory'"


def a_tokens_role(at):
    Token.objects.filter(name="robot").update(role="admin")
    return "token 'robot'"


def a_tokens_secret(at):
    Token.objects.filter(name="robot").update(digest="0" * 64)
    return "token 'robot'"


def a_token_made(at):
    Token.objects.create(name="mallory", role="admin", digest="0" * 64, created_by="system")
    return "token 'mallory'"


def a_revoked_token_revived(at):
    Token.objects.filter(name="gone").update(revoked_at=None)
    return "token 'gone'"


def a_grant_widened(at):
    Grant.objects.update(target="*")
    return "grant of 'otto'"


def a_policy_loosened(at):
    Policy.objects.update(rule="allow")
    return "policies"


def a_policy_removed(at):
    Policy.objects.all().delete()
    return "policies"


def a_rule_made(at):
    AutoApprovalRule.objects.create(
        id="rule", lookup_key="bare:pay", tool="pay", is_exact=False, arguments="{}", digest="0" * 64,
        made_by="user:ida", made_at=1,
    )  # fmt: skip
    return "auto-approval rule rule"


def a_budget_raised(at):
    BudgetLimit.objects.update(amount=1000)
    return "budget:run"


def a_retention_rule_shortened(at):
    RetentionRule.objects.update(days=1)
    return f"retention rule {RetentionRule.objects.get().pk} differs from the audit log"


def a_retention_rule_made(at):
    rule = RetentionRule.objects.create(days=1, reason="mine", made_by="user:ida", made_at=1)
    return f"retention rule {rule.pk} differs from the audit log"


def a_retention_rule_removed(at):
    RetentionRule.objects.update(removed_at=1)
    return f"retention rule {RetentionRule.objects.get().pk} is removed"


def a_hold_released(at):
    hold = LegalHold.objects.get(released_at=None)
    LegalHold.objects.update(released_at=1, released_by="user:ida")
    return f"legal hold {hold.pk} is released"


def a_hold_moved(at):
    LegalHold.objects.filter(released_at=None).update(conversation=Conversation.objects.get(key="alpha"))
    return f"legal hold {LegalHold.objects.get(released_at=None).pk} differs from the audit log"


def a_redaction_requested_by_another(at):
    RedactionRequest.objects.update(requested_by="user:otto")
    return f"redaction request {RedactionRequest.objects.get().pk} differs from the audit log"


def a_redaction_request_widened(at):
    RedactionRequest.objects.update(scope=RedactionScope("alpha", [1, 2]).as_json())
    return f"redaction request {RedactionRequest.objects.get().pk} differs from the audit log"
