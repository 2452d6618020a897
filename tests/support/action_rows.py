"""A row for each action, by `module.function`: `test_actions` does it as everybody.

To join, add a line. `ROWS`: what people do, functions that begin with `by`. `begin(people)` prepares and answers the
deed, which then is done by somebody who may, by everybody who may not, and by a second person. Functions that take
nobody's right are in `action_proofs`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from conversations.access import list_export
from conversations.access.accounts import edit_grants, people, sign_in, sign_in_links, tokens
from conversations.access.audit.listing.export import EXPORT
from conversations.access.audit.listing.filters import AuditFilters
from conversations.alerts import edit_rules, handle_alarms
from conversations.conversation import annotate
from conversations.runs import edit_remote_agents
from conversations.runs.approvals import auto_approval_edit
from conversations.runs.budgets import edit_budgets
from conversations.runs.policy import edit_policy
from conversations.tool_calls import saved_views
from conversations.transport import quarantine
from tests.support.action_beginnings import (
    ALERT,
    ALWAYS,
    BUDGET,
    REMOTE,
    RULE,
    Deed,
    People,
    alerted,
    annotating,
    answering,
    approving_always,
    cancelling,
    controlling,
    controlling_by_name,
    controlling_each,
    deactivated,
    deciding,
    deciding_each,
    deleting,
    ending_an_alarm,
    forking,
    in_quarantine,
    of_another,
    of_dead_letter,
    replaying,
    rerunning,
    responding,
    running_again,
    speaking,
    stopping,
    unshelving,
    with_a_budget,
    with_a_command,
    with_a_grant,
    with_a_remote_agent,
    with_a_rule,
    with_a_token,
    with_a_view,
    with_an_auto_approval_rule,
)
from tests.support.cast import PASSWORD

AGAIN = "each time is another one"
NO_CONVERSATION = "it is about no conversation: the audit log has it"


class Row(NamedTuple):
    """`right`: of `permissions.TABLE`. `event`: the kind that tells of it. `late`: what a second one reads, a pattern.

    Where there is no event or no race the reason stands in its place, after a dash.
    """

    begin: Callable[[People], Deed]
    right: str
    event: str
    late: str
    verb: str = ""
    """as the audit log has it, when it is not the function's name"""
    audit: str = "done"
    """or, after a dash, why a success is not in the audit log"""
    then: str = ""
    """a further verb that it enters, after the first"""


BY_FIRST = r"user:\w+ {} at \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


ROWS: dict[str, Row] = {
    "manual_output.answer_call": Row(
        answering, "respond", "response.received", r"user:\w+ already answered this call, at 20"
    ),
    "decide.decide": Row(deciding, "decide", "approval.decided", r"user:\w+ already decided: approve, at 20"),
    "decide.decide_each": Row(
        deciding_each, "decide", "approval.decided", r"user:\w+ already decided: approve, at 20", verb="decide"
    ),
    "list_export.begin_export": Row(
        lambda all_: lambda by: list_export.begin_export(by, EXPORT, AuditFilters(), "csv"), "export",
        f"- {NO_CONVERSATION}", f"- {AGAIN}", verb="export_audit",
    ),
    "annotate.annotate": Row(annotating, "annotate", annotate.KIND, f"- {AGAIN}; its client id says which"),
    "control.pause": Row(controlling("pause"), "control", "conversation.paused", BY_FIRST.format("paused it")),
    "control.resume": Row(
        controlling("resume", "pause"), "control", "conversation.resumed", BY_FIRST.format("resumed it")
    ),
    "control.take_over": Row(
        controlling("take_over"), "control", "conversation.taken_over", BY_FIRST.format("took over")
    ),
    "control.hand_back": Row(
        controlling("hand_back", "take_over"), "control", "conversation.handed_back", BY_FIRST.format("handed back")
    ),
    "control.stop": Row(
        controlling("stop", is_running=True), "control", "run.stopping", BY_FIRST.format("stopped it")
    ),
    "control.abort": Row(
        controlling("abort", is_running=True), "control", "run.stopping", BY_FIRST.format("stopped it")
    ),
    "control.perform": Row(
        controlling_by_name, "control", "conversation.paused", BY_FIRST.format("paused it"), verb="pause"
    ),
    "control.perform_on_each": Row(
        controlling_each, "control", "conversation.paused", BY_FIRST.format("paused it"), verb="pause"
    ),
    "fork.fork": Row(forking, "control", "conversation.forked", f"- {AGAIN}; its client id says which"),
    "fork.rerun": Row(rerunning, "control", "run.queued", f"- {AGAIN}; its client id says which", verb="fork"),
    "edit_grants.give_grant": Row(
        lambda all_: lambda by: edit_grants.give_grant(by, "otto", "speak_as", "system"), "people",
        f"- {NO_CONVERSATION}", r"this grant already exists: otto may speak as system, granted by user:\w+",
    ),
    "edit_grants.take_grant": Row(
        with_a_grant, "people", f"- {NO_CONVERSATION}", r"this grant of otto is already revoked, by user:\w+"
    ),
    "post_message.post": Row(speaking, "send", "message", f"- {AGAIN}; its client id says which", verb="send"),
    "people.create_person": Row(
        lambda all_: lambda by: people.create_person(by, "maria", ["viewer"]), "people", f"- {NO_CONVERSATION}",
        "maria is taken",
    ),
    "people.set_roles": Row(
        lambda all_: lambda by: people.set_roles(by, "vera", ["auditor"], expected=["viewer"]), "people",
        f"- {NO_CONVERSATION}", r"the roles of vera are now auditor \(changed by user:\w+\)",
    ),
    "people.deactivate": Row(
        lambda all_: lambda by: people.deactivate(by, "vera"), "people", f"- {NO_CONVERSATION}",
        r"the account vera is already deactivated \(changed by user:\w+\)",
    ),
    "people.activate": Row(
        deactivated, "people", f"- {NO_CONVERSATION}", r"the account vera is already active \(changed by user:\w+\)"
    ),
    "edit_policy.set_policy": Row(
        lambda all_: lambda by: edit_policy.set_policy(by, RULE, expected=""), "policies", f"- {NO_CONVERSATION}",
        r"has changed: user:\w+ has changed it",
    ),
    "edit_policy.remove_policy": Row(with_a_rule, "policies", f"- {NO_CONVERSATION}", "this rule no longer exists"),
    "edit_policy.load_policies": Row(
        lambda all_: lambda by: edit_policy.load_policies(by, [RULE]), "policies", f"- {NO_CONVERSATION}",
        "- the whole file is the policy, whoever was first",
    ),
    "edit_budgets.set_budget": Row(
        lambda all_: lambda by: edit_budgets.set_budget(by, **BUDGET), "policies", f"- {NO_CONVERSATION}",
        "- the last word holds, and the audit log has both",
    ),
    "edit_budgets.remove_budget": Row(
        with_a_budget, "policies", f"- {NO_CONVERSATION}", "this budget no longer exists"
    ),
    "edit_rules.make_rule": Row(
        lambda all_: lambda by: edit_rules.make_rule(by, ALERT), "alerts", f"- {NO_CONVERSATION}",
        "there is already an alert rule Failures", verb="make_alert",
    ),
    "edit_rules.change_rule": Row(
        alerted(lambda by, rule: edit_rules.change_rule(by, rule.id, ALERT, version=1)), "alerts",
        f"- {NO_CONVERSATION}", r"user:\w+ has changed the rule Failures in the meantime", verb="change_alert",
    ),
    "edit_rules.remove_rule": Row(
        alerted(lambda by, rule: edit_rules.remove_rule(by, rule.id)), "alerts", f"- {NO_CONVERSATION}",
        "this alert rule no longer exists", verb="remove_alert",
    ),
    "edit_rules.renew_secret": Row(
        alerted(lambda by, rule: edit_rules.renew_secret(by, rule.id)), "alerts", f"- {NO_CONVERSATION}", f"- {AGAIN}",
        verb="renew_alert_secret",
    ),
    "edit_rules.send_test": Row(
        alerted(lambda by, rule: edit_rules.send_test(by, rule.id)), "alerts", f"- {NO_CONVERSATION}", f"- {AGAIN}",
        verb="test_alert",
    ),
    "edit_remote_agents.register": Row(
        lambda all_: lambda by: edit_remote_agents.register(by, REMOTE), "tokens", f"- {NO_CONVERSATION}",
        "there is already an agent Weather", verb="register_agent",
    ),
    "edit_remote_agents.remove": Row(
        with_a_remote_agent, "tokens", f"- {NO_CONVERSATION}", "this agent is no longer registered", verb="remove_agent"
    ),
    "handle_alarms.shelve": Row(
        alerted(lambda by, rule: handle_alarms.shelve(by, rule.id, 3600)), "alerts", f"- {NO_CONVERSATION}",
        "- the last one says until when", verb="shelve_alert",
    ),
    "handle_alarms.unshelve": Row(
        unshelving, "alerts", f"- {NO_CONVERSATION}", "this is no longer shelved", verb="unshelve_alert"
    ),
    "handle_alarms.end_alarm": Row(
        ending_an_alarm, "alerts", f"- {NO_CONVERSATION}", r"user:\w+ already closed this alarm"
    ),
    "handle_alarms.retry_delivery": Row(
        of_dead_letter(handle_alarms.retry_delivery), "alerts", f"- {NO_CONVERSATION}", "no longer a dead letter"
    ),
    "handle_alarms.discard_delivery": Row(
        of_dead_letter(handle_alarms.discard_delivery), "alerts", f"- {NO_CONVERSATION}", "no longer a dead letter"
    ),
    "quarantine.redrive": Row(
        in_quarantine(lambda by, number: quarantine.redrive(by, number, conversation="desk")), "quarantine",
        "- the event is the unknown sender's own: the audit log has who read it again", r"user:\w+ was faster",
    ),
    "quarantine.discard": Row(
        in_quarantine(lambda by, number: quarantine.discard(by, number, "noise")), "quarantine",
        f"- {NO_CONVERSATION}", r"user:\w+ was faster",
    ),
    "quarantine.discard_alike": Row(
        in_quarantine(lambda by, number: quarantine.discard_alike(by, number, "noise")), "quarantine",
        f"- {NO_CONVERSATION}", "someone else was faster", verb="discard",
    ),
    "request_replay.request_replay": Row(
        replaying, "replay_unsafe", "replay.requested", f"- {AGAIN}", verb="replay"
    ),
    "create.receive": Row(
        responding, "respond", "response.received", f"- {AGAIN}", verb="respond",
        audit="- publishing is recorded by the event itself (law E)",
    ),
    "auto_approval_edit.approve_and_make_rule": Row(
        approving_always, "decide", "approval.decided", r"user:\w+ already decided: approve, at 20", verb="decide",
        then="make_rule",
    ),
    "auto_approval_edit.make_rule": Row(
        lambda all_: lambda by: auto_approval_edit.make_rule(by, ALWAYS), "decide", f"- {NO_CONVERSATION}", f"- {AGAIN}"
    ),
    "auto_approval_edit.revoke_rule": Row(
        with_an_auto_approval_rule, "decide", f"- {NO_CONVERSATION}", r"user:\w+ already revoked this rule"
    ),
    "stop_and_rerun.run_again": Row(
        running_again, "control", "run.queued", r"user:\w+ already ran it again: run .* is queued"
    ),
    "stop_and_rerun.cancel_run": Row(stopping, "control", "run.cancelled", "is already cancelled", verb="cancel_run"),
    "cancel_or_delete.cancel": Row(
        cancelling, "control", "run.cancelled", "- what is over stays as it is", verb="cancel_run"
    ),
    "cancel_or_delete.delete": Row(deleting, "respond", "response.deleted", "no response", verb="delete_response"),
    "saved_views.save_view": Row(
        lambda all_: lambda by: saved_views.save_view(by, "Slow ones", "status=failed"), "save_views",
        f"- {NO_CONVERSATION}", "there is already a view named 'Slow ones'",
    ),
    "saved_views.rename_view": Row(
        with_a_view(lambda by, number: saved_views.rename_view(by, number, "Others")), "save_views",
        f"- {NO_CONVERSATION}", "- the last name holds",
    ),
    "saved_views.remove_view": Row(
        with_a_view(saved_views.remove_view), "save_views", f"- {NO_CONVERSATION}", "this view no longer exists"
    ),
    "sign_in.set_password": Row(
        of_another(lambda by, name: sign_in.set_password(by, name, PASSWORD)), "people", f"- {NO_CONVERSATION}",
        "- the last one holds",
    ),
    "sign_in.sign_out_everywhere": Row(
        of_another(sign_in.sign_out_everywhere), "people", f"- {NO_CONVERSATION}", f"- {AGAIN}"
    ),
    "sign_in_links.make_link": Row(
        lambda all_: lambda by: sign_in_links.make_link(by, "vera"), "people", f"- {NO_CONVERSATION}", f"- {AGAIN}"
    ),
    "tokens.make_token": Row(
        lambda all_: lambda by: tokens.make_token(by, "ci", "viewer"), "tokens", f"- {NO_CONVERSATION}",
        "token ci already exists",
    ),
    "command_tokens.revoke_command_token": Row(
        with_a_command, "tokens", f"- {NO_CONVERSATION}", "this command has ended"
    ),
    "tokens.revoke_token": Row(
        with_a_token, "tokens", f"- {NO_CONVERSATION}", r"token ci is already revoked, by user:\w+"
    ),
}  # fmt: skip
