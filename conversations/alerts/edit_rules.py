"""What people do with alert rules: create, change, remove, test, renew the secret. Each is audited."""

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from conversations.access.action_context import audited_action
from conversations.access.audit import chain
from conversations.access.permissions import Who
from conversations.alerts import alarms, deliveries, dispatcher, noted_events, signing
from conversations.alerts.rule_fields import FORMS, RuleFields, masked_url
from conversations.core.database_clock import database_now
from conversations.core.errors import Conflict, Invalid, NotFound
from conversations.core.principals import Principal
from conversations.models import Alarm, AlertDelivery, AlertRule

MAX_RULES = 100
NO_RULE = "this alert rule no longer exists"


def make_rule(by: Who, fields: RuleFields, *, reason: str = "") -> AlertRule:
    """Create a rule about what happens from now on. Its `secret` is not shown again. Raises Invalid, Conflict."""
    fields = fields.checked(settings.CONFIG.alert_allow_list)
    with audited_action(by, "make_alert", f"alert:{fields.name}", right="alerts") as principal:
        if AlertRule.objects.filter(removed_at=None).count() >= MAX_RULES:
            raise Invalid(f"there are already {MAX_RULES} alert rules; remove one first")
        _free(fields.name)
        now = database_now()
        noted_events.raise_all_alarms(now)
        secret = "" if fields.form == "email" else signing.new_secret()
        rule = AlertRule.objects.create(
            **fields._asdict(), secret=secret, since=now, updated_by=str(principal), updated_at=now
        )
        _add_audit_entry(principal, "make_alert", rule, reason=reason)
    return rule


def change_rule(by: Who, number: int, fields: RuleFields, *, version: int, reason: str = "") -> AlertRule:
    """Change a rule that is still at `version`. A change of what it is about closes its open alarms; turning it off
    also discards their waiting deliveries. Raises NotFound, Invalid, Conflict."""
    with audited_action(by, "change_alert", f"alert:{number}", right="alerts") as principal:
        rule = _locked(number)
        if rule.version != version:
            raise Conflict(f"{rule.updated_by} has changed the rule {rule.name} in the meantime; reload and check it")
        before, was_about = state_of(rule), _about(rule)
        is_same_form = fields.form == rule.form
        fields = fields.checked(settings.CONFIG.alert_allow_list, rule if is_same_form else None)
        if fields.name != rule.name:
            _free(fields.name)
        for field, value in fields._asdict().items():
            setattr(rule, field, value)
        now = database_now()
        if rule.form != "email" and not rule.secret:
            rule.secret = signing.new_secret()
        if _about(rule) != was_about:
            noted_events.raise_all_alarms(now)
            _end_alarms(rule, principal, now)
            rule.since = now
        if not rule.is_enabled:
            _discard(AlertDelivery.objects.filter(rule=rule, alarm__isnull=False), now, "the rule was turned off")
        _save(rule, principal, now)
        _add_audit_entry(principal, "change_alert", rule, before=before, reason=reason)
    return rule


def remove_rule(by: Who, number: int, *, reason: str = "") -> None:
    """Remove a rule: its open alarms are closed, its waiting deliveries discarded, its address and secret erased."""
    with audited_action(by, "remove_alert", f"alert:{number}", right="alerts") as principal:
        rule = _locked(number)
        before, now = state_of(rule), database_now()
        rule.removed_at = now
        _end_alarms(rule, principal, now)
        _discard(AlertDelivery.objects.filter(rule=rule), now, "the rule was removed")
        name, rule.url, rule.secret, rule.recipients = rule.name, "", "", ""
        _save(rule, principal, now)
        chain.add_entry(principal, "remove_alert", f"alert:{number}", before=before, reason=reason,
                    correlation={"name": name})  # fmt: skip


def renew_secret(by: Who, number: int) -> AlertRule:
    """Give a rule a new secret, which signs from now on and is not shown again."""
    with audited_action(by, "renew_alert_secret", f"alert:{number}", right="alerts") as principal:
        rule = _locked(number)
        if rule.form == "email":
            raise Invalid("e-mail is not signed")
        rule.secret = signing.new_secret()
        _save(rule, principal, database_now())
        _add_audit_entry(principal, "renew_alert_secret", rule)
    return rule


def send_test(by: Who, number: int) -> AlertDelivery:
    """Send a test message, with retries like any other."""
    with audited_action(by, "test_alert", f"alert:{number}", right="alerts") as principal:
        rule = _locked(number)
        delivery = deliveries.enqueue(rule, "test", database_now())
        chain.add_entry(principal, "test_alert", f"alert:{number}", correlation={"delivery": delivery.id})
        transaction.on_commit(dispatcher.wake)
    return delivery


def state_of(rule: AlertRule) -> str:
    """Return a digest of a rule for the audit log, with its version in place of secrets."""
    about = [rule.name, *map(str, _about(rule)), rule.form, masked_url(rule), rule.recipients]
    return chain.digest([*about, str(rule.is_enabled), str(rule.sends_end), str(rule.version)])


def _about(rule: AlertRule) -> tuple[object, ...]:
    return rule.kind, rule.after_s, rule.agent, rule.grouping, rule.is_enabled


def _locked(number: int) -> AlertRule:
    rule = AlertRule.objects.select_for_update().filter(id=number, removed_at=None).first()
    if rule is None:
        raise NotFound(NO_RULE)
    return rule


def _free(name: str) -> None:
    if AlertRule.objects.filter(name=name, removed_at=None).exists():
        raise Conflict(f"there is already an alert rule {name}", field="name")


def _end_alarms(rule: AlertRule, principal: Principal, now: int) -> None:
    for alarm in Alarm.objects.filter(rule=rule, closed_at=None).select_related("rule"):
        alarm.rule.sends_end = False
        alarms.close(alarm, str(principal), now)


def _discard(rows: QuerySet[AlertDelivery], now: int, why: str) -> None:
    """Discard those that wait or are being sent."""
    rows.filter(status="waiting").update(status="discarded", done_at=now, error=why, is_sending=False)


def _save(rule: AlertRule, principal: Principal, now: int) -> None:
    rule.version, rule.updated_by, rule.updated_at = rule.version + 1, str(principal), now
    rule.save()


def _add_audit_entry(principal: Principal, verb: str, rule: AlertRule, *, before: str = "", reason: str = "") -> None:
    correlation = {"name": rule.name, "kind": rule.kind, "form": FORMS[rule.form], "to": masked_url(rule)}
    chain.add_entry(
        principal, verb, f"alert:{rule.id}", before=before, after=state_of(rule), reason=reason,
        correlation={name: text for name, text in correlation.items() if text},
    )  # fmt: skip
    transaction.on_commit(dispatcher.wake)
