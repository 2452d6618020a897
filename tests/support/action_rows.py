"""A row for each action, by `module.function`: `test_actions` does it as everybody.

To join, add a line. `ROWS`: what people do, functions that begin with `by`. `begin(people)` prepares and answers the
deed, which then is done by somebody who may, by everybody who may not, and by a second person. Functions that take
nobody's right are in `action_proofs`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from conversations.access.accounts import command_tokens, grants, people, sign_in, sign_in_links, tokens
from conversations.access.audit import list_export
from conversations.access.audit.listing.export import EXPORT
from conversations.access.audit.listing.filters import AuditFilters
from conversations.access.permissions import Who
from conversations.alerts import deliveries, edit_rules, handle_alarms
from conversations.alerts.rule_fields import RuleFields
from conversations.asgi.agui import registration
from conversations.asgi.agui.registered import RemoteAgent
from conversations.conversation import annotate, control, fork, post_message
from conversations.core.principals import SYSTEM
from conversations.models import Agent, Alarm, AlertDelivery, AlertRule, ToolCall, User
from conversations.runs import stop_and_rerun
from conversations.runs.approvals import auto_approval_edit, decide
from conversations.runs.budgets import edit_budgets
from conversations.runs.policy import edit_policy
from conversations.runs.policy.evaluate import PolicyRule as Rule
from conversations.runs.replay import request_replay
from conversations.runs.responses import cancel_or_delete, create, manual_output
from conversations.tool_calls import saved_views
from conversations.transport import quarantine
from tests.support import alerting, quarantined, teamwork
from tests.support.cast import PASSWORD, person
from tests.support.stand_in import Answer

People = Mapping[str, User]
Deed = Callable[[Who], Any]

SAID = {"type": "message", "sender": "agent:Triage", "recipient": "agent:Dialogue", "content": "Somebody is here."}
RULE = Rule("", "pay", "deny")
BUDGET = {"scope": "run", "measure": "tokens", "amount": "20000"}
ALERT = RuleFields("Failures", "run_failed", "post", "https://example.com/hook")
REMOTE = RemoteAgent("Weather", "https://weather.example/agent")
ALWAYS = auto_approval_edit.AutoApprovalScope(tool="file_incident", arguments={}, is_exact=False)
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


def deciding(all_: People) -> Deed:
    approval = teamwork.ask(all_["operator"]).id
    return lambda by: decide.decide(by, approval, "approve")


def deciding_each(all_: People) -> Deed:
    approval = teamwork.ask(all_["operator"]).id

    def each(by: Who) -> None:
        (outcome,) = decide.decide_each(by, [approval], "approve")
        if outcome.error is not None:
            raise outcome.error

    return each


def approving_always(all_: People) -> Deed:
    approval = teamwork.ask(all_["operator"]).id
    return lambda by: auto_approval_edit.approve_and_make_rule(by, approval, auto_approval_edit.AutoApprovalScope())


def with_an_auto_approval_rule(all_: People) -> Deed:
    made = auto_approval_edit.make_rule(SYSTEM, ALWAYS).id
    return lambda by: auto_approval_edit.revoke_rule(by, made)


def with_a_remote_agent(all_: People) -> Deed:
    registration.register(SYSTEM, REMOTE)
    return lambda by: registration.remove(by, REMOTE.name)


def with_a_view(do: Callable[[Who, int], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        made = saved_views.save_view(all_["operator"], "Slow ones", "status=failed").pk
        return lambda by: do(by, made)

    return begin


def steering(verb: str, *before: str, is_running: bool = False) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        teamwork.say(all_["operator"])
        if is_running:
            teamwork.claim()
        for one in before:
            control.steer(all_["operator"], one, "flood")
        return lambda by: getattr(control, verb)(by, "flood", "because")

    return begin


def steering_by_name(all_: People) -> Deed:
    teamwork.say(all_["operator"])
    return lambda by: control.steer(by, "pause", "flood")


def steering_each(all_: People) -> Deed:
    teamwork.say(all_["operator"])

    def each(by: Who) -> None:
        (outcome,) = control.steer_each(by, "pause", ["flood"])
        if outcome.error is not None:
            raise outcome.error

    return each


def annotating(all_: People) -> Deed:
    about = teamwork.say(all_["operator"])
    return lambda by: annotate.annotate(by, "flood", about, client_id="1", thumb="up")


def speaking(all_: People) -> Deed:
    ask = {"recipient": "agent:Dialogue", "content": "Water", "client_id": "1"}
    return lambda by: post_message.post(by, "flood", **ask)


def responding(all_: People) -> Deed:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    asked = create.ResponseRequest(model="Dialogue", input=[item])
    return lambda by: create.receive(by, asked)


def answering(all_: People) -> Deed:
    """A response waits for its client to answer a call."""
    tool = {"type": "function", "name": "rain", "parameters": {"type": "object", "properties": {}}}
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    asked = create.receive(all_["operator"], create.ResponseRequest(model="Dialogue", input=[item], tools=[tool]))
    answer = Answer(teamwork.claim(asked.conversation))
    answer.call("rain", "{}", "c1")
    answer.finish()
    call = ToolCall.objects.get(run=asked.run).id
    return lambda by: manual_output.answer_call(by, call, "4 mm")


def cancelling(all_: People) -> Deed:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    response = create.receive(all_["operator"], create.ResponseRequest(model="Dialogue", input=[item])).response
    return lambda by: cancel_or_delete.cancel(by, response)


def deleting(all_: People) -> Deed:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Water"}]}
    asked = create.receive(all_["operator"], create.ResponseRequest(model="Dialogue", input=[item]))
    Answer(teamwork.claim(asked.conversation)).finish()
    return lambda by: cancel_or_delete.delete(by, asked.response)


def running_again(all_: People) -> Deed:
    run = teamwork.fail(all_["operator"])
    return lambda by: stop_and_rerun.run_again(by, run)


def stopping(all_: People) -> Deed:
    run = teamwork.ask(all_["operator"]).run
    return lambda by: stop_and_rerun.stop(by, run)


def replaying(all_: People) -> Deed:
    layers = {"qualified_name": "file_incident", "origin": "function", "schema": teamwork.SCHEMA}
    layers["lookup_key"] = "bare:file_incident"
    tool = {"name": "file_incident", "public_name": "file_incident", "effect": "unsafe", **layers}
    Agent.objects.filter(name="Dialogue").update(tools=json.dumps([tool]))
    approval = teamwork.ask(all_["operator"], **layers)
    decide.decide(all_["approver"], approval.id, "approve")
    approval.refresh_from_db()
    teamwork.go_on(approval)
    return lambda by: request_replay.request_replay(by, approval.tool_call, reason="It was lost", tool="file_incident")


def forking(all_: People) -> Deed:
    at = teamwork.say(all_["operator"])
    return lambda by: fork.fork(by, "flood", at)


def rerunning(all_: People) -> Deed:
    run = teamwork.fail(all_["operator"])
    return lambda by: fork.rerun(by, run)


def with_a_grant(all_: People) -> Deed:
    grants.give_grant(SYSTEM, "otto", "speak_as", "system")
    return lambda by: grants.take_grant(by, "otto", "speak_as", "system")


def in_quarantine(do: Callable[[Who, int], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        message = quarantined.quarantine(SAID).pk
        return lambda by: do(by, message)

    return begin


def with_a_rule(all_: People) -> Deed:
    edit_policy.set_policy(SYSTEM, RULE)
    return lambda by: edit_policy.remove_policy(by, RULE.target)


def alerted(do: Callable[[Who, AlertRule], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        rule = edit_rules.make_rule(SYSTEM, ALERT)
        return lambda by: do(by, rule)

    return begin


def unshelving(all_: People) -> Deed:
    rule = edit_rules.make_rule(SYSTEM, ALERT)
    handle_alarms.shelve(SYSTEM, rule.id, 3600)
    return lambda by: handle_alarms.unshelve(by, rule.id)


def ending_an_alarm(all_: People) -> Deed:
    rule = alerting.rule()
    alarm = Alarm.objects.create(rule=rule, group="g", kind=rule.kind, cause="failed", opened_at=1, last_at=1)
    return lambda by: handle_alarms.end_alarm(by, alarm.id)


def of_dead_letter(do: Callable[[Who, str], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        letter = deliveries.enqueue(alerting.rule(), "test", 1)
        AlertDelivery.objects.update(status="failed")
        return lambda by: do(by, letter.id)

    return begin


def deactivated(all_: People) -> Deed:
    people.deactivate(SYSTEM, "vera")
    return lambda by: people.activate(by, "vera")


def with_a_command(all_: People) -> Deed:
    token = command_tokens.issue("robot")
    return lambda by: command_tokens.revoke_command_token(by, token.id)


def with_a_token(all_: People) -> Deed:
    tokens.make_token(SYSTEM, "ci", "viewer")
    return lambda by: tokens.revoke_token(by, "ci")


def of_another(do: Callable[[Who, str], Any]) -> Callable[[People], Deed]:
    def begin(all_: People) -> Deed:
        name = person("rosa").username
        return lambda by: do(by, name)

    return begin


BY_FIRST = r"user:\w+ {} at \d\d:\d\d:\d\d UTC"


def with_a_budget(all_: People) -> Deed:
    """A budget to remove."""
    budget = edit_budgets.set_budget(SYSTEM, **BUDGET)
    return lambda by: edit_budgets.remove_budget(by, budget.id)


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
    "control.pause": Row(steering("pause"), "control", "conversation.paused", BY_FIRST.format("paused it")),
    "control.resume": Row(
        steering("resume", "pause"), "control", "conversation.resumed", BY_FIRST.format("resumed it")
    ),
    "control.take_over": Row(
        steering("take_over"), "control", "conversation.taken_over", BY_FIRST.format("took over")
    ),
    "control.hand_back": Row(
        steering("hand_back", "take_over"), "control", "conversation.handed_back", BY_FIRST.format("handed back")
    ),
    "control.stop": Row(
        steering("stop", is_running=True), "control", "run.stopping", BY_FIRST.format("stopped it")
    ),
    "control.abort": Row(
        steering("abort", is_running=True), "control", "run.stopping", BY_FIRST.format("stopped it")
    ),
    "control.steer": Row(
        steering_by_name, "control", "conversation.paused", BY_FIRST.format("paused it"), verb="pause"
    ),
    "control.steer_each": Row(
        steering_each, "control", "conversation.paused", BY_FIRST.format("paused it"), verb="pause"
    ),
    "fork.fork": Row(forking, "control", "conversation.forked", f"- {AGAIN}; its client id says which"),
    "fork.rerun": Row(rerunning, "control", "run.queued", f"- {AGAIN}; its client id says which", verb="fork"),
    "grants.give_grant": Row(
        lambda all_: lambda by: grants.give_grant(by, "otto", "speak_as", "system"), "people",
        f"- {NO_CONVERSATION}", r"this grant already exists: otto may .*, granted by user:\w+",
    ),
    "grants.take_grant": Row(
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
    "registration.register": Row(
        lambda all_: lambda by: registration.register(by, REMOTE), "tokens", f"- {NO_CONVERSATION}",
        "there is already an agent Weather", verb="register_agent",
    ),
    "registration.remove": Row(
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
    "stop_and_rerun.run_again": Row(running_again, "control", "run.queued", f"- {AGAIN}: they wait for each other"),
    "stop_and_rerun.stop": Row(stopping, "control", "run.cancelled", "is already cancelled", verb="cancel_run"),
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
